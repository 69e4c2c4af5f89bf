package impliedrole

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
)

// pass brings one namespace up to date.
type pass struct {
	*reconciler
	namespace string
	rules     []state.Rule
	book      *infer.RuleSet
	// writes counts what was done on behalf of each source.
	writes  map[string]int
	results map[event.Key]consume.Result
	// warned counts the bindings that people were told of.
	warned int
}

// maxWarnings bounds the Events of one pass: whoever makes many bindings that stand in the
// way must not hold up the rest. Statuses tell of the others.
const maxWarnings = 50

// round looks at what is dirty, and does what is to be done. It reports whether something
// else has become dirty meanwhile. Whatever is not done stays dirty, even after a panic.
func (p *pass) round(ctx context.Context, everything bool) (again bool, err error) {
	space, d := p.take(p.namespace)
	defer func() { p.touch(p.namespace, d) }()
	p.book, p.rules = p.RuleSet(p.namespace)
	d.rules = d.rules || !p.book.Same(space.book) || everything
	for _, source := range p.affected(space, everything) {
		d.sources[source] = struct{}{}
	}
	space.book = p.book

	steps, found := p.plan(slices.Sorted(maps.Keys(d.sources)))
	w := newWork(p)
	w.perform(ctx, steps)
	p.account(ctx, space, found, w)
	d.rules = p.settle(p.namespace, found) || d.rules
	again = w.again || p.dirty(p.namespace)
	p.conclude(&d, found, w.undone)
	if err := w.err; err != nil || !again {
		if d.rules {
			if told := p.tell(ctx); told != nil {
				return false, told
			}
			d.rules = false
		}
		if err == nil {
			p.finish(p.namespace, len(p.rules) == 0 && p.Empty(p.namespace))
		}
		return false, err
	}
	return true, nil
}

// affected lists the sources to which rules that changed since the last pass matter.
func (p *pass) affected(space *space, everything bool) []string {
	if everything || space.book == nil {
		return p.Sources(p.namespace)
	}
	if p.book.Same(space.book) {
		return nil
	}
	var sources []string
	for _, role := range p.book.Changed(space.book) {
		for _, b := range p.BindingsTo(p.namespace, role) {
			sources = append(sources, b.Name)
		}
	}
	return sources
}

// plan finds out what is to be done about sources, and what stands in the way.
func (p *pass) plan(sources []string) ([]infer.Action, map[string]finding) {
	var actions []infer.Action
	found := make(map[string]finding, len(sources))
	for _, source := range sources {
		plan, f := p.book.Plan(p.Snapshot(p.namespace, source)), finding{}
		actions = append(actions, plan.Actions...)
		for _, o := range plan.Obstacles {
			if o.Reason == infer.NameConflict {
				f.held = append(f.held, o.Name)
			}
			if o.Reason != infer.TooManyBindings { // Of which the rules tell.
				f.troubles = append(f.troubles, o)
			}
		}
		found[source] = f
	}
	return actions, found
}

// account adds what went wrong to the findings, and tells people of bindings that are not what they seem.
func (p *pass) account(ctx context.Context, space *space, found map[string]finding, w *work) {
	for source, troubles := range w.troubles {
		f := found[source]
		f.troubles = append(f.troubles, troubles...)
		slices.SortFunc(f.troubles, infer.Obstacle.Compare)
		found[source] = f
	}
	for source, n := range w.writes {
		p.writes[source] += n
	}
	for source, f := range found {
		for _, name := range f.held {
			if _, known := space.held[name]; !known {
				p.warn(ctx, name, infer.NameConflict, fmt.Sprintf("it has the name of a RoleBinding that follows from %s: delete or rename it", source))
			}
		}
		if b := p.Binding(p.namespace, source); b == nil || !b.Labelled || !b.Grants() {
			delete(space.foreign, source)
		} else if space.foreign[source] != string(b.UID) {
			space.foreign[source] = string(b.UID)
			p.warn(ctx, source, "ForeignLabel", fmt.Sprintf("the label %s says that it was generated, but it was not: it is left alone, and counts as explicit",
				infer.ManagedByLabel))
		}
	}
}

// warn attaches a note to a binding.
func (p *pass) warn(ctx context.Context, name, reason, message string) {
	b, ok := p.Bindings.Get(p.BindingKey(p.namespace, name))
	if p.warned++; !ok || p.warned > maxWarnings {
		return
	}
	p.log.WarnContext(ctx, "a foreign RoleBinding stands in the way", slog.String("object", b.Key.String()), slog.String("reason", reason))
	if err := p.api.Event(ctx, b.Change, condition.Note{Warning: true, Reason: reason, Message: message}); err != nil {
		p.log.DebugContext(ctx, "event not recorded", slog.String("object", b.Key.String()), slog.Any("error", err))
	}
}

// conclude takes from d what is done, and notes what to say about it.
func (p *pass) conclude(d *dirt, found map[string]finding, undone map[string]struct{}) {
	for source, f := range found {
		if _, left := undone[source]; left {
			continue
		}
		delete(d.sources, source)
		b, ok := p.Bindings.Get(p.BindingKey(p.namespace, source))
		if !ok || p.writes[source] == 0 && len(p.book.Direct(b.Value.Role)) == 0 {
			continue
		}
		p.results[b.Key] = applied(b.Change, p.writes[source], f)
	}
	for key := range d.gone {
		if _, left := undone[key.Name]; left {
			continue
		}
		delete(d.gone, key)
		if change, ok := p.tombstone(key); ok {
			p.results[key] = applied(change, p.writes[key.Name], found[key.Name])
		}
	}
}

// applied is what became of a source, unless something stands in the way.
func applied(c event.Change, writes int, f finding) consume.Result {
	r := consume.Result{Change: c, Outcome: eventv1.Outcome_OUTCOME_APPLIED, Writes: writes}
	if len(f.troubles) > 0 {
		r.Outcome, r.Message = eventv1.Outcome_OUTCOME_PENDING, f.troubles[0].Message
	}
	return r
}

func (p *pass) tombstone(key event.Key) (event.Change, bool) {
	if b, ok := p.Bindings.Tombstone(key); ok {
		return b.Change, true
	}
	r, ok := p.Rules.Tombstone(key)
	return r.Change, ok
}

func (p *pass) said() []consume.Result {
	return slices.Collect(maps.Values(p.results))
}
