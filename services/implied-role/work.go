package impliedrole

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

// work is the carrying out of a plan.
type work struct {
	*pass

	mu sync.Mutex
	// undone sources are to be looked at again; again means at once.
	undone map[string]struct{}
	again  bool
	// err is the first error that waiting may cure.
	err error
	// troubles by source, and the roles that could not be given to everybody who must get them.
	troubles map[string][]infer.Obstacle
	withheld map[infer.Role]struct{}
	writes   map[string]int
}

func newWork(p *pass) *work {
	return &work{
		pass: p, undone: map[string]struct{}{}, troubles: map[string][]infer.Obstacle{},
		withheld: map[infer.Role]struct{}{}, writes: map[string]int{},
	}
}

// chunk is how many bindings are made before something more urgent is looked for.
const chunk = 256

// perform carries out steps in the order of [infer.Schedule]. When something becomes dirty
// meanwhile, it leaves the rest of what is to be given for another round: taking away must not wait.
func (w *work) perform(ctx context.Context, steps []infer.Action) {
	first, then, last := infer.Schedule(steps)
	w.all(ctx, first)
	for len(then) > 0 && (len(w.writes) == 0 || !w.dirty(w.namespace)) {
		n := min(chunk, len(then))
		w.all(ctx, then[:n])
		then = then[n:]
	}
	if len(then) > 0 {
		w.leave(append(then, last...))
		w.again = true
		return
	}
	last = slices.DeleteFunc(last, func(s infer.Action) bool {
		_, withheld := w.withheld[s.Child]
		if withheld {
			w.leave([]infer.Action{s})
		}
		return withheld
	})
	w.all(ctx, last)
}

func (w *work) leave(steps []infer.Action) {
	for _, s := range steps {
		w.undone[s.Source] = struct{}{}
	}
}

// all carries out steps, several at a time, and returns when all are done.
func (w *work) all(ctx context.Context, steps []infer.Action) {
	var group sync.WaitGroup
	for _, s := range steps {
		w.writers <- struct{}{}
		group.Go(func() {
			defer func() { <-w.writers }()
			w.note(ctx, s, w.carryOut(ctx, s))
		})
	}
	group.Wait()
}

// errStale means that a step was planned from what is no longer so.
var errStale = errors.New("the binding is not as it was")

// note keeps what became of a step.
func (w *work) note(ctx context.Context, s infer.Action, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.metrics.wrote(s.Verb, err)
	switch {
	case err == nil:
		w.writes[s.Source]++
	case errors.Is(err, errStale):
		w.undone[s.Source] = struct{}{}
		w.withheld[s.Child] = struct{}{}
		w.again = true
	case errors.Is(err, kube.ErrTerminating):
		// With the namespace everything goes.
	case fault.IsUnavailable(err):
		w.undone[s.Source] = struct{}{}
		w.withheld[s.Child] = struct{}{}
		w.trouble(s, infer.Pending, fmt.Sprintf("RoleBinding %s is still to be written", s.Name))
		if w.err == nil {
			w.err = err
		}
	default:
		w.log.WarnContext(ctx, "the API server refuses a change of a RoleBinding", slog.String("object", w.BindingKey(w.namespace, s.Name).String()),
			slog.String("verb", s.Verb.String()), slog.Any("error", err))
		w.trouble(s, infer.Forbidden, fmt.Sprintf("the API server refuses RoleBinding %s: %s", s.Name, cause(err)))
	}
}

func (w *work) trouble(s infer.Action, reason, message string) {
	w.troubles[s.Source] = append(w.troubles[s.Source], infer.Obstacle{Name: s.Name, Parent: s.Parent, Child: s.Child, Reason: reason, Message: message})
}

// carryOut does one step to the cluster and takes the result into the view.
func (w *work) carryOut(ctx context.Context, s infer.Action) error {
	is, there := w.Bindings.Get(w.BindingKey(w.namespace, s.Name))
	if there != (s.Observed != nil) || there && !same(is.Value, s.Observed) {
		return errStale
	}
	var err error
	if s.Verb == infer.Delete {
		err = w.remove(ctx, is)
	} else {
		seen := is.Change
		if !there {
			seen = event.Change{Key: w.BindingKey(w.namespace, s.Name)}
		}
		var now event.Change
		if now, err = w.api.Apply(ctx, kinds.RoleBindings(), seen, s.Object()); err == nil {
			return w.made(ctx, now)
		}
	}
	if errors.Is(err, kube.ErrConflict) {
		return w.refresh(ctx, is.Change, s.Name)
	}
	return err
}

// same reports whether the view holds what a step was planned from, or what an earlier
// part of the same step made of it: an object that is ours, under the same UID.
func same(is, planned *infer.Binding) bool { return is.Generated() && is.UID == planned.UID }

func (w *work) remove(ctx context.Context, is state.Binding) error {
	if err := w.api.Delete(ctx, kinds.RoleBindings(), is.Change); err != nil {
		return err
	}
	if is.Value.Finalized {
		return nil // Its end is told when it comes.
	}
	gone := is.Change
	gone.Deleted, gone.ObservedAt = true, time.Now()
	return w.made(ctx, gone)
}

// made takes a state that a step brought about into the view.
func (w *work) made(ctx context.Context, now event.Change) error {
	w.write(now)
	return w.view.Apply(ctx, now)
}

// refresh reads what the view did not know yet, and has the step planned anew.
func (w *work) refresh(ctx context.Context, was event.Change, name string) error {
	now, err := w.api.Get(ctx, kinds.RoleBindings(), w.namespace, name)
	if errors.Is(err, kube.ErrNotFound) && was.UID != "" {
		now, err = was, nil
		now.Deleted, now.ObservedAt = true, time.Now()
	}
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		return err
	}
	if err == nil {
		err = w.view.Apply(ctx, now)
	} else {
		err = nil
	}
	return errors.Join(errStale, err)
}
