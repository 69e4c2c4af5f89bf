package tuplesync

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// full is how many tuples go in one call.
const full = 100

// collector makes few calls of many small writes: who comes while a call is under way goes with the next one, and nobody
// waits when there is none. What takes away goes before what adds.
//
// Each call is made by one of those whose writes are in it, with that one's context, so that the fence is checked for all of
// them: they are of one turn. Then the next one leads.
type collector struct {
	writer changer

	mu      sync.Mutex
	busy    bool
	waiting []*part
}

// changer makes the calls.
type changer interface {
	Write(ctx context.Context, change tuple.Write) (refused map[tuple.Tuple]error, err error)
}

// errUnanswered is what becomes of a part until there is an answer.
var errUnanswered = fmt.Errorf("writing with others: %w", reconcile.ErrStale)

// part is what somebody has to write, and what became of it.
type part struct {
	tuple.Write

	// turn is sent to once it is this one's to lead, or closed when it is done.
	turn    chan struct{}
	done    bool
	refused map[tuple.Tuple]error
	err     error
}

// Write makes one change, together with those of others.
func (c *collector) Write(ctx context.Context, change tuple.Write) (refused map[tuple.Tuple]error, err error) {
	p := &part{Write: change, turn: make(chan struct{}, 1), err: errUnanswered}
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
	defer c.next()
	call := c.collect(p, ctx.Err() == nil)
	defer func() { dismiss(call[1:], ctx.Err() != nil) }()
	if p.err = ctx.Err(); p.err == nil || len(call) > 1 {
		c.call(ctx, call)
	}
	return p.refused, p.err
}

// dismiss tells others what became of theirs. If the time of who led was up, theirs was not, and they try again.
func dismiss(others []*part, late bool) {
	for _, p := range others {
		if p.err != nil && late {
			p.err = errUnanswered
		}
		p.done = true
		close(p.turn)
	}
}

// collect takes those that go with a part, if any are to: that one first, and who fits beside it.
func (c *collector) collect(p *part, others bool) []*part {
	c.mu.Lock()
	defer c.mu.Unlock()
	call, size := []*part{p}, len(p.Add)+len(p.Remove)
	c.waiting = slices.DeleteFunc(c.waiting, func(other *part) bool {
		n := len(other.Add) + len(other.Remove)
		fits := others && other != p && other.goesWith(p) && size+n <= full
		if fits {
			call, size = append(call, other), size+n
		}
		return fits || other == p
	})
	return call
}

// goesWith says whether two parts can be one call: they are of one turn, on one store, and both add or both take away.
func (p *part) goesWith(other *part) bool {
	return p.StoreID == other.StoreID && p.ModelID == other.ModelID && p.Turn == other.Turn && p.Sure == other.Sure &&
		(len(p.Add) == 0) == (len(other.Add) == 0) && (len(p.Remove) == 0) == (len(other.Remove) == 0)
}

// next has another lead: who takes something away, if there is one.
func (c *collector) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy = len(c.waiting) > 0; !c.busy {
		return
	}
	i := max(0, slices.IndexFunc(c.waiting, func(p *part) bool { return len(p.Remove) > 0 }))
	c.waiting[i].turn <- struct{}{}
}

// call writes parts, and finds out for each what became of it.
func (c *collector) call(ctx context.Context, parts []*part) {
	refused, err := c.writer.Write(ctx, together(parts))
	switch {
	case len(parts) == 1:
		parts[0].refused, parts[0].err = refused, err
		return
	case err != nil && !fault.IsUnavailable(err) && ctx.Err() == nil:
		for _, p := range parts { // One of them is to blame, and the others are not to be held up by it.
			c.call(ctx, []*part{p})
		}
		return
	}
	var good []*part
	for _, p := range parts {
		p.err = err
		for _, t := range p.Add {
			if why, bad := refused[t]; bad {
				p.refused = put(p.refused, t, why)
			}
		}
		if p.refused == nil && len(refused) > 0 {
			good = append(good, p)
		}
	}
	if len(good) > 0 { // They are there, but nobody was told of it.
		c.call(ctx, good)
	}
}

func put(refused map[tuple.Tuple]error, t tuple.Tuple, why error) map[tuple.Tuple]error {
	if refused == nil {
		refused = map[tuple.Tuple]error{}
	}
	refused[t] = why
	return refused
}

// together is one write of several.
func together(parts []*part) tuple.Write {
	all := parts[0].Write
	all.Add, all.Remove = slices.Clone(all.Add), slices.Clone(all.Remove)
	for _, p := range parts[1:] {
		all.Add, all.Remove = append(all.Add, p.Add...), append(all.Remove, p.Remove...)
	}
	return all
}
