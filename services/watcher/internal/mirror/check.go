package mirror

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/entail-dev/entail/services/internal/publish"
)

// check looks at the stream from outside until ctx ends. Someone may delete, purge or
// replace it, and nobody would be told.
func (m *mirror) check(ctx context.Context) {
	for sleep(ctx, m.CheckInterval) {
		if err := m.checkOnce(ctx); err != nil && ctx.Err() == nil {
			m.grumble.Do(func() { m.Log.WarnContext(ctx, "stream cannot be checked", "error", err) })
		}
	}
}

func (m *mirror) checkOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	incarnation, err := m.incarnation(ctx)
	if err != nil {
		return err
	}
	for _, f := range m.feeds {
		if err := f.check(ctx, incarnation); err != nil {
			return err
		}
	}
	return nil
}

// check makes sure of the marker, and of one object taken at random: of a stream that
// was purged each is missing.
func (f *feed) check(ctx context.Context, incarnation string) error {
	f.mu.Lock()
	synced, stream, restart, due := f.sweep == nil && f.stream != "", f.stream, f.restart, time.Now().After(f.due)
	name, probe := f.probe()
	f.mu.Unlock()
	if !synced {
		return nil
	}
	if due {
		restart(errDue)
		return nil
	}
	if stream != incarnation {
		restart(errAgain)
		return nil
	}
	written, err := f.Publisher.LastMarker(ctx, f.Cluster, f.kind.GroupResource)
	switch {
	case errors.Is(err, publish.ErrNone):
		if err := f.Publisher.Ensure(ctx, f.StreamReplicas); err != nil {
			return err
		}
		restart(errAgain)
		return nil
	case errors.Is(err, publish.ErrMalformed), err == nil && written.GetStream() != incarnation:
		restart(errAgain)
		return nil
	case err != nil || name.Name == "":
		return err
	}
	return f.verify(ctx, name, probe)
}

// probe picks an object: the one under suspicion, or any.
func (f *feed) probe() (types.NamespacedName, head) {
	if h, ok := f.heads[f.suspect]; ok {
		return f.suspect, h
	}
	for name, h := range f.heads {
		return name, h
	}
	return types.NamespacedName{}, head{}
}

// verify sweeps again when the message of an object is missing twice: once may be a
// replica of the stream that lags, or a deletion that just expired.
func (f *feed) verify(ctx context.Context, name types.NamespacedName, probe head) error {
	last, err := f.Publisher.Last(ctx, f.key(name))
	missing := errors.Is(err, publish.ErrNone) || errors.Is(err, publish.ErrMalformed) || err == nil && last.Sequence < probe.sequence
	if err != nil && !missing {
		return err
	}
	f.mu.Lock()
	before := f.suspect
	f.suspect = types.NamespacedName{}
	missing = missing && f.heads[name] == probe
	if missing && before != name {
		f.suspect, missing = name, false
	}
	restart := f.restart
	f.mu.Unlock()
	if !missing {
		return nil
	}
	if err := f.Publisher.Unmark(ctx, f.Cluster, f.kind.GroupResource); err != nil {
		return err
	}
	restart(errAgain)
	return nil
}
