package impliedrole

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

// trackedState is an informer whose changes are recorded in a memory.
type trackedState struct {
	t       *testing.T
	view    *informer.Informer
	state   *state.State
	memory  *passHistory
	version int
}

func newTrackedState(t *testing.T) *trackedState {
	t.Helper()
	v := informer.New(informer.Config{Cluster: "local", Log: slog.New(slog.DiscardHandler)})
	s := state.New(v, "local", infer.DefaultPolicy())
	w := &trackedState{t: t, view: v, state: s, memory: newPassHistory(s)}
	v.OnChange(w.memory.RecordChange)
	v.OnReload(w.memory.MarkAllNamespaces)
	return w
}

// next returns the next state of a binding. A nil object means a deletion.
func (w *trackedState) next(name string, object *rbacv1.RoleBinding) event.Change {
	w.t.Helper()
	w.version++
	c := event.Change{Key: w.state.BindingKey("ns", name), UID: "uid-" + name, ResourceVersion: fmt.Sprint(w.version), Deleted: object == nil}
	if object != nil {
		object.Name, object.Namespace = name, "ns"
		data, err := json.Marshal(object)
		if err != nil {
			w.t.Fatal(err)
		}
		c.Object = data
	}
	return c
}

func (w *trackedState) apply(c event.Change) {
	w.t.Helper()
	if err := w.view.Apply(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *trackedState) source() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "x"}},
	}
}

// generated returns the binding that follows from the binding B by a rule a>b.
func (w *trackedState) generated() *rbacv1.RoleBinding {
	rules := infer.NewRuleSet("ns", []infer.Rule{{Name: "r", Parent: infer.Role{Name: "a"}, Child: infer.Role{Name: "b"}}}, infer.DefaultPolicy())
	for _, d := range rules.DesiredBindings(&infer.Binding{Namespace: "ns", Name: "B", UID: "u", Role: infer.Role{Name: "a"}, Subjects: w.source().Subjects}) {
		return d.ToRoleBinding()
	}
	return nil
}

// taken returns the changes that a pass would take, as text.
func (w *trackedState) taken() string {
	set := w.memory.ensureNamespaceHistory("ns").takePendingChanges()
	text := strings.Join(slices.Sorted(maps.Keys(set.sources)), " ")
	for _, k := range slices.SortedFunc(maps.Keys(set.gone), func(a, b event.Key) int { return strings.Compare(a.Name, b.Name) }) {
		text += " gone:" + k.Name
	}
	return map[bool]string{true: "all "}[set.all] + text
}

func TestPassPlansAffectedSourcesOnly(t *testing.T) {
	ours := (&trackedState{}).generated().Name
	stripped := func(w *trackedState) *rbacv1.RoleBinding {
		b := w.generated()
		b.Labels, b.OwnerReferences = nil, nil
		return b
	}
	for name, c := range map[string]struct {
		change func(*trackedState)
		want   string
	}{
		"a binding that people made":   {func(w *trackedState) { w.apply(w.next("C", w.source())) }, "C"},
		"a generated one":              {func(w *trackedState) { w.apply(w.next(ours, w.generated())) }, "B"},
		"a generated one goes":         {func(w *trackedState) { w.apply(w.next(ours, nil)) }, "B gone:" + ours},
		"somebody strips it":           {func(w *trackedState) { w.apply(w.next(ours, stripped(w))) }, "B"},
		"nothing that matters":         {func(w *trackedState) { w.memory.RecordChange(event.Key{Namespace: "ns"}) }, ""},
		"its own write":                {func(w *trackedState) { w.own(ours, w.generated()) }, ""},
		"its own deletion":             {func(w *trackedState) { w.own(ours, nil) }, ""},
		"a change after its own write": {func(w *trackedState) { w.own(ours, w.generated()); w.apply(w.next(ours, w.generated())) }, "B"},
		"everything, as at a resync":   {func(w *trackedState) { w.memory.ensureNamespaceHistory("ns").markAllChanged() }, "all "},
		"the view is loaded anew":      {func(w *trackedState) { w.memory.MarkAllNamespaces() }, "all "},
		"what a pass did not come to": {func(w *trackedState) {
			w.memory.ensureNamespaceHistory("ns").restoreChanges(changeSet{sources: map[string]struct{}{"D": {}}})
		}, "D"},
		"all that a pass did not see":  {func(w *trackedState) { w.memory.ensureNamespaceHistory("ns").restoreChanges(changeSet{all: true}) }, "all "},
		"the source of generated goes": {func(w *trackedState) { w.apply(w.next("B", nil)) }, "B gone:B"},
		"a generated one with its own": {func(w *trackedState) { w.apply(w.next(ours, w.generated())); w.apply(w.next("B", w.source())) }, "B"},
	} {
		w := newTrackedState(t)
		if got := w.taken(); got != "all " {
			t.Errorf("at the start: got %q", got)
		}
		w.apply(w.next("B", w.source()))
		w.apply(w.next(ours, w.generated()))
		w.taken()
		if w.memory.ensureNamespaceHistory("ns").hasPendingChanges() {
			t.Errorf("%s: something is pending before", name)
		}
		c.change(w)
		if got := w.memory.ensureNamespaceHistory("ns").hasPendingChanges(); got != (c.want != "" && c.want != "D") {
			t.Errorf("%s: pending is %v", name, got)
		}
		if got := w.taken(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// own stores a state as the applier does.
func (w *trackedState) own(name string, object *rbacv1.RoleBinding) {
	w.t.Helper()
	c := w.next(name, object)
	if err := w.memory.ensureNamespaceHistory("ns").storeOwnWrite(c, func() error { return w.view.Apply(w.t.Context(), c) }); err != nil {
		w.t.Fatal(err)
	}
	if len(w.memory.ensureNamespaceHistory("ns").own) > 0 {
		w.t.Error("the memory still holds written states")
	}
}
