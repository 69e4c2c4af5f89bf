package tuplesync

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// full bounds the tuples of one call that several writes share.
const full = 100

// batchWriter combines many small writes into few calls. Writes that arrive during a call share the next one; without a
// running call a write starts at once. Removals go before additions.
//
// One of the combined writes makes the call, with its own context. The fence is thereby checked for all, because they
// are of one term. A write whose own check fails shares no call.
type batchWriter struct {
	writer tupleChanger

	mu      sync.Mutex
	busy    bool
	waiting []*pendingWrite
}

// tupleChanger writes to OpenFGA.
type tupleChanger interface {
	Write(ctx context.Context, change tuple.Write) (refused map[tuple.Tuple]error, err error)
}

// errUnanswered is the error of a part without an answer; the part is tried again.
var errUnanswered = fmt.Errorf("writing with others: %w", reconcile.ErrStale)

// pendingWrite is one write and its result.
type pendingWrite struct {
	tuple.Write

	// check is that of the write's context; see [leader.WithCheck].
	check func() error
	// turn receives a value when this part must make the call. It is closed when another part has done so.
	turn    chan struct{}
	done    bool
	refused map[tuple.Tuple]error
	err     error
}

// Write makes one change, possibly in one call with others.
func (c *batchWriter) Write(ctx context.Context, change tuple.Write) (refused map[tuple.Tuple]error, err error) {
	check := func() error { return leader.CheckErr(ctx) }
	p := &pendingWrite{Write: change, check: check, turn: make(chan struct{}, 1), err: errUnanswered}
	c.mu.Lock()
	c.waiting = append(c.waiting, p)
	if !c.busy {
		c.busy = true
		p.turn <- struct{}{}
	}
	c.mu.Unlock()
	<-p.turn
	if p.done {
		return p.refused, p.err
	}
	defer c.wakeNextWrite()
	call := c.takeWritesForCall(p, ctx.Err() == nil)
	defer func() { wakeWaitingWrites(call[1:], ctx.Err() != nil) }()
	if p.err = ctx.Err(); p.err == nil || len(call) > 1 {
		c.writeInOneCall(ctx, call)
	}
	return p.refused, p.err
}

// wakeWaitingWrites wakes the other parts of a call. If the caller's context ended, their own may not have, so failed parts are
// tried again.
func wakeWaitingWrites(others []*pendingWrite, late bool) {
	for _, p := range others {
		if p.err != nil && late {
			p.err = errUnanswered
		}
		p.done = true
		close(p.turn)
	}
}

// takeWritesForCall removes p from the waiting parts and returns it. With others, it adds the parts that fit into the same call.
func (c *batchWriter) takeWritesForCall(p *pendingWrite, others bool) []*pendingWrite {
	c.mu.Lock()
	defer c.mu.Unlock()
	call, size := []*pendingWrite{p}, len(p.Add)+len(p.Remove)
	c.waiting = slices.DeleteFunc(c.waiting, func(other *pendingWrite) bool {
		n := len(other.Add) + len(other.Remove)
		fits := others && other != p && other.canShareCall(p) && size+n <= full && other.check() == nil
		if fits {
			call, size = append(call, other), size+n
		}
		return fits || other == p
	})
	return call
}

// canShareCall reports whether two parts can share a call. Store, model, term and Sure must be equal, and both must only
// add or only remove.
func (p *pendingWrite) canShareCall(other *pendingWrite) bool {
	return p.StoreID == other.StoreID && p.ModelID == other.ModelID && p.Term == other.Term && p.Sure == other.Sure &&
		(len(p.Add) == 0) == (len(other.Add) == 0) && (len(p.Remove) == 0) == (len(other.Remove) == 0)
}

// wakeNextWrite wakes the next part to make a call: one with removals, if one exists.
func (c *batchWriter) wakeNextWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy = len(c.waiting) > 0; !c.busy {
		return
	}
	i := max(0, slices.IndexFunc(c.waiting, func(p *pendingWrite) bool { return len(p.Remove) > 0 }))
	c.waiting[i].turn <- struct{}{}
}

// writeInOneCall writes parts together, and sets the result of each.
func (c *batchWriter) writeInOneCall(ctx context.Context, parts []*pendingWrite) {
	refused, err := c.writer.Write(ctx, combineWrites(parts))
	switch {
	case len(parts) == 1:
		parts[0].refused, parts[0].err = refused, err
		return
	case err != nil && !fault.IsUnavailable(err) && ctx.Err() == nil:
		for _, p := range parts { // One part causes the error and must not fail the others.
			c.writeInOneCall(ctx, []*pendingWrite{p})
		}
		return
	}
	var good []*pendingWrite
	for _, p := range parts {
		p.err = err
		for _, t := range p.Add {
			if why, bad := refused[t]; bad {
				p.refused = addRefusal(p.refused, t, why)
			}
		}
		if p.refused == nil && len(refused) > 0 {
			good = append(good, p)
		}
	}
	if len(good) > 0 { // Their tuples were written, but not announced.
		c.writeInOneCall(ctx, good)
	}
}

func addRefusal(refused map[tuple.Tuple]error, t tuple.Tuple, why error) map[tuple.Tuple]error {
	if refused == nil {
		refused = map[tuple.Tuple]error{}
	}
	refused[t] = why
	return refused
}

// combineWrites combines parts into one write.
func combineWrites(parts []*pendingWrite) tuple.Write {
	all := parts[0].Write
	all.Add, all.Remove = slices.Clone(all.Add), slices.Clone(all.Remove)
	for _, p := range parts[1:] {
		all.Add, all.Remove = append(all.Add, p.Add...), append(all.Remove, p.Remove...)
	}
	return all
}
