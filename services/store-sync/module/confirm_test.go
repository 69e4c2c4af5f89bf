package module

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/store-sync/module/moduletest"
)

// truth is an API server with one AuthorizationModel or none.
type truth struct {
	is    event.Change
	asked int
}

func (a *truth) Newest(_ context.Context, _ kinds.Kind, o event.Change) (event.Change, error) {
	if a.asked++; a.is.UID == "" {
		o.Deleted = true
		return o, nil
	}
	return a.is, nil
}

// hearsay holds a view with the state from NATS, and an API server with the true state.
type hearsay struct {
	*moduletest.Feed

	state     *State
	api       *truth
	confirmer *confirm.Confirmer
	metrics   *prometheus.Registry
}

func newHearsay(t testing.TB) *hearsay {
	t.Helper()
	f := moduletest.NewFeed(t)
	h := &hearsay{Feed: f, state: NewState(f.View, moduletest.Cluster), api: &truth{}, metrics: prometheus.NewRegistry()}
	h.confirmer = confirm.New(f.View, h.api, moduletest.Cluster, slog.New(slog.DiscardHandler), h.metrics)
	return h
}

// say puts an AuthorizationModel into the view, and returns its change.
func (h *hearsay) say(version int, text string, edit ...func(*event.Change)) event.Change {
	var told event.Change
	m := moduletest.Model("m", corev1alpha1.StoreRef{Name: "demo"})
	m.Spec.Model, m.UID = text, "m"
	edit = append(edit, func(c *event.Change) { c.ResourceVersion = strconv.Itoa(version); told = *c })
	h.Put(kinds.AuthorizationModels(), moduletest.Cluster, "m", m, edit...)
	return told
}

func (h *hearsay) confirm(t *testing.T) error {
	t.Helper()
	o, _ := h.state.Models.Last(h.state.ModelKey("m"))
	return h.confirmer.Confirm(t.Context(), ModelStatement(o))
}

// contradicted returns the number of contradictions by the metrics.
func (h *hearsay) contradicted() (times float64) {
	families, err := h.metrics.Gather()
	if err != nil {
		h.T.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			times += m.GetCounter().GetValue()
		}
	}
	return times
}

func TestNothingIsBelievedThatTheAPIServerDoesNotSay(t *testing.T) {
	for name, test := range map[string]struct {
		arrange      func(h *hearsay)
		want         error
		contradicted float64
	}{
		"as it is":        {func(h *hearsay) { h.api.is = h.say(1, "a") }, nil, 0},
		"another text":    {func(h *hearsay) { h.api.is = h.say(1, "a"); h.say(2, "b") }, reconcile.ErrStale, 1},
		"of its version":  {func(h *hearsay) { h.say(1, "a"); h.api.is = h.other(1) }, reconcile.ErrStale, 1},
		"a late bus":      {func(h *hearsay) { h.say(1, "a"); h.api.is = h.other(2) }, reconcile.ErrStale, 0},
		"never there":     {func(h *hearsay) { h.say(1, "a") }, reconcile.ErrStale, 0},
		"a false end":     {func(h *hearsay) { h.api.is = h.say(1, "a"); h.say(2, "a", moduletest.Gone) }, reconcile.ErrStale, 1},
		"the far future":  {func(h *hearsay) { h.api.is = h.say(1, "a"); h.say(900000, "b") }, reconcile.ErrStale, 1},
		"an end":          {func(h *hearsay) { h.say(1, "a"); h.say(2, "a", moduletest.Gone) }, nil, 0},
		"another's start": {func(h *hearsay) { h.say(1, "a", moduletest.Gone); h.api.is = h.other(2) }, reconcile.ErrStale, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHearsay(t)
			test.arrange(h)
			err := h.confirm(t)
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if err := h.confirm(t); err != nil {
				t.Errorf("planned again: %v", err)
			}
			if h.contradicted() != test.contradicted {
				t.Errorf("contradicted %v times", h.contradicted())
			}
		})
	}
}

// other returns the AuthorizationModel with another text, which the view does not hold.
func (h *hearsay) other(version int) event.Change {
	h.T.Helper()
	return newHearsay(h.T).say(version, "other")
}

func TestWhatTheAPIServerSaidOnceIsNotAskedAgain(t *testing.T) {
	h := newHearsay(t)
	h.api.is = h.say(1, "a")
	for range 2 {
		if err := h.confirm(t); err != nil {
			t.Fatal(err)
		}
	}
	if h.api.asked != 1 {
		t.Errorf("asked %d times", h.api.asked)
	}
	now := h.say(3, "b")
	o, _ := h.state.Models.Get(h.state.ModelKey("m"))
	if err := h.confirmer.Learn(t.Context(), ModelStatement(o), now); err != nil {
		t.Fatal(err)
	}
	if err := h.confirm(t); err != nil || h.api.asked != 1 {
		t.Errorf("after a write: %v, asked %d times", err, h.api.asked)
	}
	h.say(4, "b", moduletest.Gone)
	if n := h.confirmer.Known(); n != 0 {
		t.Errorf("%d objects are remembered that are gone", n)
	}
}

func TestAWriteThatFindsAnotherTextMakesThePlanStale(t *testing.T) {
	h := newHearsay(t)
	h.say(1, "forged")
	o, _ := h.state.Models.Get(h.state.ModelKey("m"))
	if err := h.confirmer.Learn(t.Context(), ModelStatement(o), h.other(2)); !errors.Is(err, reconcile.ErrStale) || h.contradicted() != 1 {
		t.Errorf("%v, contradicted %v times", err, h.contradicted())
	}
}

func TestOfAnotherClusterNothingIsBelieved(t *testing.T) {
	h := newHearsay(t)
	key := h.Put(kinds.AuthorizationModels(), "east", "m", moduletest.Model("m", corev1alpha1.StoreRef{Name: "demo", Cluster: "local"}))
	o, _ := h.state.Models.Get(key)
	err := h.confirmer.Confirm(t.Context(), ModelStatement(o))
	if !errors.Is(err, confirm.ErrContradicted) || !fault.IsUnavailable(err) || h.api.asked != 0 {
		t.Errorf("%v, asked %d times", err, h.api.asked)
	}
}

func TestAllThatAModelIsMadeOfIsConfirmedWhateverHasGoneFromIt(t *testing.T) {
	h := newHearsay(t)
	made := func(name, document string) corev1alpha1.AuthorizationModel {
		m := moduletest.Model(name, corev1alpha1.StoreRef{Name: "demo"})
		m.Annotations = map[string]string{corev1alpha1.DocumentAnnotation: document}
		return m
	}
	sources := []corev1alpha1.ModuleStatus{}
	for _, source := range []string{
		"store/demo", "authorizationmodel/here", "authorizationmodel/gone", "authorizationmodel/moved", "policydocument/ns/left", "policydocument/ns/live",
	} {
		sources = append(sources, corev1alpha1.ModuleStatus{Source: source})
	}
	h.Put(kinds.Stores(), "local", "demo", corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Status: corev1alpha1.StoreStatus{Modules: sources},
	})
	h.Put(kinds.AuthorizationModels(), "local", "here", moduletest.Model("here", corev1alpha1.StoreRef{Name: "demo"}))
	h.Put(kinds.AuthorizationModels(), "local", "gone", moduletest.Model("gone", corev1alpha1.StoreRef{Name: "demo"}), moduletest.Gone)
	h.Put(kinds.AuthorizationModels(), "local", "moved", moduletest.Model("moved", corev1alpha1.StoreRef{Name: "other"}))
	h.Put(kinds.AuthorizationModels(), "local", "left-carrier", made("left-carrier", "ns/left"), moduletest.Gone)
	h.Put(kinds.AuthorizationModels(), "local", "live-carrier", made("live-carrier", "ns/live"))
	store, _ := h.state.Stores.Get(StoreKey("demo", "local"))
	var names []string
	for _, s := range h.state.Parts(store, h.state.ModelsOf(store.Key)) {
		names = append(names, s.Change().Key.Name)
	}
	if want := []string{"demo", "here", "live-carrier", "gone", "moved", "left-carrier"}; !slices.Equal(names, want) {
		t.Errorf("confirmed are %v, want %v", names, want)
	}
}

// parts confirms the model of a Store that was decided from some AuthorizationModels, and whose status lists another
// one.
func (h *hearsay) parts(t *testing.T, source string, models ...Model) error {
	t.Helper()
	store := corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	store.Status.Modules = []corev1alpha1.ModuleStatus{{Name: "m", Source: source}}
	o, _ := h.state.Stores.Get(h.Put(kinds.Stores(), moduletest.Cluster, "demo", store))
	return h.confirmer.Confirm(t.Context(), h.state.Parts(o, models)[1:]...)
}

func TestWhatIsOutOfAModelMustBeAwayAsItWasDecided(t *testing.T) {
	elsewhere := func(o *corev1alpha1.AuthorizationModel) { o.Spec.StoreRef.Name = "other" }
	of := map[string]string{corev1alpha1.DocumentAnnotation: "default/d"}
	for name, test := range map[string]struct {
		source string
		last   corev1alpha1.AuthorizationModel
		want   error
	}{
		"it refers to another":             {"authorizationmodel/m", edited(elsewhere), nil},
		"it has come back since":           {"authorizationmodel/m", edited(), reconcile.ErrStale},
		"another of its name is elsewhere": {"policydocument/default/d", edited(elsewhere), nil},
		"another of its name is here":      {"policydocument/default/d", edited(), reconcile.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHearsay(t)
			first := edited()
			first.Annotations = of
			h.Put(kinds.AuthorizationModels(), moduletest.Cluster, "m", first, func(c *event.Change) { c.UID = "first" })
			h.Put(kinds.AuthorizationModels(), moduletest.Cluster, "m", first, func(c *event.Change) { c.UID = "first" }, moduletest.Gone)
			h.Put(kinds.AuthorizationModels(), moduletest.Cluster, "m", test.last, func(c *event.Change) { h.api.is = *c })
			if err := h.parts(t, test.source); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}

func edited(edit ...func(*corev1alpha1.AuthorizationModel)) corev1alpha1.AuthorizationModel {
	m := moduletest.Model("m", corev1alpha1.StoreRef{Name: "demo"})
	for _, f := range edit {
		f(&m)
	}
	return m
}

func TestWhatIsOfAnotherClusterHoldsUpNoModel(t *testing.T) {
	h := newHearsay(t)
	m := edited(func(m *corev1alpha1.AuthorizationModel) {
		m.Spec.StoreRef.Cluster, m.Annotations = moduletest.Cluster, map[string]string{corev1alpha1.DocumentAnnotation: "default/d"}
	})
	h.Put(kinds.AuthorizationModels(), "east", "m", m)
	for _, source := range []string{"authorizationmodel/east/m", "policydocument/default/d"} {
		if err := h.parts(t, source); err != nil || h.api.asked > 0 {
			t.Errorf("%s: %v, asked %d times", source, err, h.api.asked)
		}
	}
}
