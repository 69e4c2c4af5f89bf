package informer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
)

// loadPollInterval is the time between two checks whether a load has ended.
const loadPollInterval = 20 * time.Millisecond

// Apply stores c unless the informer already holds this state or a newer one. Services also call it with the results
// of their own writes, so that they read them at once (see [Informer.WithCurrentEpoch]). The error is [fault.Terminal]
// if c cannot be decoded.
func (v *Informer) Apply(ctx context.Context, c event.Change) error {
	return v.applyInLoad(ctx, c, v.loads.Load(), func() bool { return true })
}

// errEarlierLife means that a message was delivered before the stream was restored from a backup: the restored stream
// has not reached its sequence yet. The error also occurs if the clock of the server went back. Then the server
// delivers the message again.
var errEarlierLife = errors.New("the stream holds no such message, or has not sent it to the informer")

// ApplyDelivery does the same as [Informer.Apply] for a change that the service's own consumer received. Such a message
// may be older than the present load: it waited in this process while the stream was restored from a backup. Its
// sequence then belongs to another life of the stream, so ApplyDelivery must not compare it with those of the load.
//
// ApplyDelivery waits for the end of a load. Afterwards it stores only a change that the feed has not reached yet. The
// error is [fault.Unavailable] if the server must deliver the message again.
func (v *Informer) ApplyDelivery(ctx context.Context, c event.Change) error {
	load, err := v.awaitLoadEnd(ctx)
	if err != nil {
		return err
	}
	isAhead, isEarlier := v.compareWithFeed(c)
	switch {
	case isEarlier:
		return fault.Unavailable(fmt.Errorf("apply change of %s: %w", c.Key, errEarlierLife))
	case !isAhead:
		return v.checkDecodable(ctx, c)
	}
	return v.applyInLoad(ctx, c, load, func() bool { return !v.loading && v.LoadNumber() == load })
}

// awaitLoadEnd waits until the informer does not load the stream, and returns the number of the load.
func (v *Informer) awaitLoadEnd(ctx context.Context) (load uint64, err error) {
	for {
		load = v.LoadNumber()
		v.mu.RLock()
		loading := v.loading
		v.mu.RUnlock()
		if !loading && v.LoadNumber() == load {
			return load, nil
		}
		if !backoff.Sleep(ctx, loadPollInterval) {
			return 0, fault.Unavailable(fmt.Errorf("wait for the end of a load: %w", ctx.Err()))
		}
	}
}

// compareWithFeed compares a delivered change with the last message that the feed has read. isAhead means that the feed
// has still to read the change. isEarlier means that the change has a later sequence but an earlier time.
func (v *Informer) compareWithFeed(c event.Change) (isAhead, isEarlier bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	isAhead = max(c.Sequence, c.TombstoneSequence) > v.position
	return isAhead, isAhead && c.PublishedAt.Before(v.lastRead)
}

// checkDecodable returns the error of [Informer.Apply] for a change that the feed has read: the feed skips a change
// that cannot be read or decoded. It stores nothing.
func (v *Informer) checkDecodable(ctx context.Context, c event.Change) error {
	t, isNewer, ok := v.tableForChange(c)
	if !ok || !isNewer || !v.hasClusterOf(c) {
		return v.missingTableErr(c, ok)
	}
	if c.Omitted && !c.Deleted {
		object, err := v.fetchLargeObject(ctx, c.Key)
		if err != nil || object == nil {
			return err
		}
		c.Object = object
	}
	if _, err := t.decodeChange(c, v.cfg.KeepUndecodable); err != nil {
		return fault.Terminal(fmt.Errorf("decode object of %s: %w", c.Key, err))
	}
	return nil
}

// hasClusterOf reports whether the informer holds the objects of a change's cluster.
func (v *Informer) hasClusterOf(c event.Change) bool {
	return v.cfg.Cluster == "" || v.cfg.Cluster == c.Key.Cluster
}

func (v *Informer) missingTableErr(c event.Change, ok bool) error {
	if ok {
		return nil
	}
	return fault.Terminal(fmt.Errorf("apply change of %s: the informer does not follow this kind", c.Key))
}

// applyInLoad stores c, which was received during a load, if prepare returns true. prepare runs with the lock.
func (v *Informer) applyInLoad(ctx context.Context, c event.Change, number uint64, prepare func() bool) error {
	t, newer, ok := v.tableForChange(c)
	if !ok {
		return v.missingTableErr(c, ok)
	}
	if !newer || !v.hasClusterOf(c) {
		return nil
	}
	load, sequence := strconv.FormatUint(number, 10), strconv.FormatUint(c.Sequence, 10)
	state := strings.Join([]string{load, sequence, c.Key.SubjectTokens(), c.UID, c.Epoch, c.ResourceVersion, strconv.FormatBool(c.Deleted)}, " ")
	_, err, _ := v.decoding.Do(state, func() (any, error) { return nil, v.fetchAndStore(ctx, t, c, prepare) })
	return err
}

// fetchAndStore stores c. It first reads the object from the API server if the object was too large for NATS.
func (v *Informer) fetchAndStore(ctx context.Context, t kindTable, c event.Change, prepare func() bool) error {
	if c.Omitted && !c.Deleted {
		object, err := v.fetchLargeObject(ctx, c.Key)
		if err != nil || object == nil {
			return err
		}
		c.Object = object
	}
	return v.decodeAndStore(t, c, prepare)
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
