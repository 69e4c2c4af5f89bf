package informer

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
)

// Apply stores c unless the informer already holds this state or a newer one. Services also call it with the results
// of their own writes, so that they read them at once (see [Informer.WithCurrentEpoch]). The error is [fault.Terminal]
// if c cannot be decoded.
func (v *Informer) Apply(ctx context.Context, c event.Change) error {
	t, newer, ok := v.tableForChange(c)
	if !ok {
		return fault.Terminal(fmt.Errorf("apply change of %s: the informer does not follow this kind", c.Key))
	}
	if !newer || v.cfg.Cluster != "" && v.cfg.Cluster != c.Key.Cluster {
		return nil
	}
	load, sequence := strconv.FormatUint(v.loads.Load(), 10), strconv.FormatUint(c.Sequence, 10)
	state := strings.Join([]string{load, sequence, c.Key.SubjectTokens(), c.UID, c.Epoch, c.ResourceVersion, strconv.FormatBool(c.Deleted)}, " ")
	_, err, _ := v.decoding.Do(state, func() (any, error) { return nil, v.fetchAndStore(ctx, t, c) })
	return err
}

// fetchAndStore stores c. It first reads the object from the API server if the object was too large for NATS.
func (v *Informer) fetchAndStore(ctx context.Context, t kindTable, c event.Change) error {
	if c.Omitted && !c.Deleted {
		object, err := v.fetchLargeObject(ctx, c.Key)
		if err != nil || object == nil {
			return err
		}
		c.Object = object
	}
	return v.decodeAndStore(t, c, func() bool { return true })
}

// ApplyAuthoritative stores an answer of the API server. The answer replaces the held state if it contradicts this
// state, even if the held state has a higher version. ApplyAuthoritative does nothing if the informer has received
// another state in the meantime.
func (v *Informer) ApplyAuthoritative(ctx context.Context, held, is event.Change) error {
	is = v.WithCurrentEpoch(is)
	if is.Deleted {
		return v.Apply(ctx, is)
	}
	t, _, ok := v.tableForChange(is)
	if !ok {
		return fault.Terminal(fmt.Errorf("correct %s: the informer does not follow this kind", is.Key))
	}
	return v.decodeAndStore(t, is, func() bool { return t.overrideStoredState(held, is) })
}

// decodeAndStore decodes a change and stores it if prepare returns true. Then it calls the callbacks of
// [Informer.OnChange].
func (v *Informer) decodeAndStore(t kindTable, c event.Change, prepare func() bool) error {
	commit, err := t.decodeChange(c, v.cfg.KeepUndecodable)
	if err != nil {
		err = fault.Terminal(fmt.Errorf("decode object of %s: %w", c.Key, err))
	}
	if commit == nil {
		return err
	}
	v.applying.Lock()
	defer v.applying.Unlock()
	v.mu.Lock()
	taken := prepare() && commit()
	if order, ok := event.CompareEpochs(c.Epoch, v.epochs[c.Key.Cluster]); !ok || order > 0 {
		v.epochs[c.Key.Cluster] = c.Epoch
	}
	v.mu.Unlock()
	for _, f := range v.onChange {
		if taken {
			f(c.Key)
		}
	}
	return err
}

// tableForChange returns the lister or forwarder of c, and reports whether c is newer than its content. It takes the
// applying lock, so the callbacks have run for every state that it reads.
func (v *Informer) tableForChange(c event.Change) (t kindTable, isNewer, ok bool) {
	v.applying.Lock()
	defer v.applying.Unlock()
	v.mu.RLock()
	defer v.mu.RUnlock()
	t, ok = v.tableOf(c.Key.GroupResource)
	return t, ok && t.isNewChange(c), ok
}

func (v *Informer) fetchLargeObject(ctx context.Context, k event.Key) ([]byte, error) {
	if v.cfg.FetchLargeObject == nil {
		return nil, fault.Terminal(fmt.Errorf("object %s is too large for the bus and this service cannot read it elsewhere", k))
	}
	object, err := v.cfg.FetchLargeObject(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("read large object %s: %w", k, err)
	}
	return object, nil
}
