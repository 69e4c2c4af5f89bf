//go:build integration

package storesync_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/modeltest"
	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// fewHistories is for CI. The nightly run asks for 40 rounds, which are 200 histories.
const (
	fewHistories      = 1
	historiesPerRound = 5
)

// servedGroup is a group whose resources are discovered. The resources of histories are in the core group, which no test can define.
const servedGroup = "core.example"

// served returns a text of a history with the names that the resources have in the group, and worldly the other way round.
func served(text string) string {
	return strings.ReplaceAll(text, "core_secret", "core_example_secret")
}

func worldly(text string) string {
	return strings.ReplaceAll(text, "core_example_secret", "core_secret")
}

func TestStoreSyncFollowsModelRulesInRandomHistories(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	h := &histories{testEnv: b, start: func() *testenv.RunningService { return b.serve(ordinary(servedGroup+"/v1alpha1"), unprivileged) }}
	t.Cleanup(func() { b.Kube.DeleteCRD(t, "secrets."+servedGroup) })
	h.running = h.start()
	text, err := plan.ModuleTemplate{Discovered: true}.RenderModule(plan.APIResource{Plural: "secrets", Singular: "secret", Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	discovered := []modeltest.DiscoveredModule{{Name: "secrets", Text: text}}
	rounds := max(fewHistories, historiesPerRound*seeds.RoundCount(t, 0))
	modeltest.CheckServedHistories(t, rounds, seeds.FirstSeed(t), discovered, func() modeltest.SystemUnderTest { return h.next() })
}

// histories runs one history after the other, each in a Store of its own.
type histories struct {
	*testEnv
	start   func() *testenv.RunningService
	running *testenv.RunningService
	count   int
	last    *storeHistory
	// newest is the second in which an object was created last. The API server knows ages by the second.
	newest int64
}

// storeHistory is a [modeltest.SystemUnderTest]: the objects of one Store.
type storeHistory struct {
	*histories
	name string
	was  modeltest.Declarations
	// new means that there is no Store yet.
	new bool
	// names maps kinds and names of the world to names in the cluster.
	names map[string]string
}

func (h *histories) next() *storeHistory {
	h.T.Helper()
	if h.last != nil {
		h.last.end()
	}
	h.count++
	h.last = &storeHistory{histories: h, name: fmt.Sprintf("history-%d", h.count), new: true, names: map[string]string{}}
	return h.last
}

// end deletes the objects of a history.
func (h *storeHistory) end() {
	h.T.Helper()
	w := h.was
	w.Modules, w.Documents, w.Discovered = nil, nil, nil
	h.change(w)
	h.Delete(kinds.Stores(), h.name)
	h.AwaitGone(kinds.Stores(), h.name)
}

// ApplyAndSettle implements [modeltest.SystemUnderTest].
func (h *storeHistory) ApplyAndSettle(w modeltest.Declarations) (modeltest.LiveState, error) {
	h.T.Helper()
	h.change(w)
	h.settle(w)
	return h.state(w)
}

// change makes the objects those of a world. The service is away while several of them change, so that it sees them at once.
func (h *storeHistory) change(w modeltest.Declarations) {
	h.T.Helper()
	changes := h.changes(w)
	if h.was = w; len(changes) > 1 {
		h.running.Stop()
		defer func() { h.running = h.start() }()
	}
	for _, change := range changes {
		change()
	}
}

// object is a module or a document of a world.
type object struct {
	kind    kinds.Kind
	name    string
	created int
	text    string
}

func objectsOf(w modeltest.Declarations) []object {
	var all []object
	for _, m := range w.Modules {
		all = append(all, object{kinds.AuthorizationModels(), m.Name, m.Created, m.Text})
	}
	for _, d := range w.Documents {
		all = append(all, object{kinds.PolicyDocuments().InNamespace("default"), d.Name, d.Created, d.Text})
	}
	slices.SortStableFunc(all, func(a, b object) int { return cmp.Compare(a.created, b.created) })
	return all
}

// same reports whether two are one object, whose text may have changed.
func (o object) same(p object) bool {
	return o.kind == p.kind && o.name == p.name && o.created == p.created
}

// changes returns what to do: deletions first, then the Store, then the objects, the oldest first.
func (h *storeHistory) changes(w modeltest.Declarations) []func() {
	h.T.Helper()
	var changes []func()
	was, is, newest := objectsOf(h.was), objectsOf(w), h.newest
	for _, o := range was {
		if !slices.ContainsFunc(is, o.same) {
			changes = append(changes, func() { h.Delete(o.kind, h.nameOf(o)); h.AwaitGone(o.kind, h.nameOf(o)) })
		}
	}
	if h.new || w.Core != h.was.Core || w.RolesType != h.was.RolesType {
		changes = append(changes, func() { h.putStore(w) })
	}
	changes = append(changes, h.discoveries(w)...)
	for _, o := range is {
		if i := slices.IndexFunc(was, o.same); i < 0 {
			changes = append(changes, func() { h.awaitSecond(newest); h.put(o); h.newest = time.Now().Unix() })
		} else if was[i].text != o.text {
			changes = append(changes, func() { h.put(o) })
		}
	}
	return changes
}

// awaitSecond waits until a second is over: the API server tells no shorter ages apart.
func (h *storeHistory) awaitSecond(second int64) {
	h.T.Helper()
	testenv.Eventually(h.T, soon, func() error {
		if time.Now().Unix() <= second {
			return errors.New("the clock stands still")
		}
		return nil
	})
}

// nameOf returns the name of an object in the cluster. Objects that are made in one second sort by age.
func (h *storeHistory) nameOf(o object) string {
	key := o.kind.Kind + "/" + o.name
	if h.names[key] == "" {
		h.names[key] = fmt.Sprintf("%s-%03d-%s", h.name, o.created, o.name)
	}
	return h.names[key]
}

func (h *storeHistory) put(o object) {
	h.T.Helper()
	if o.kind == kinds.AuthorizationModels() {
		h.applyModule(h.nameOf(o), h.name, served(o.text))
		return
	}
	h.register(h.nameOf(o), h.name, strings.TrimSuffix("\n"+served(o.text), "\n"))
}

func (h *storeHistory) putStore(w modeltest.Declarations) {
	h.T.Helper()
	h.new = false
	annotations := map[string]any{}
	if w.RolesType {
		annotations[iaplv1alpha1.RolesAnnotation] = "role#assignee"
	}
	h.apply(kinds.Stores(), h.name, map[string]any{
		"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"coreModule": served(w.Core)},
	})
}

// discoveries returns how to define what is to be discovered, and nothing else.
func (h *storeHistory) discoveries(w modeltest.Declarations) (changes []func()) {
	h.T.Helper()
	secrets := kinds.Kind{GroupResource: event.GroupResource{Group: servedGroup, Resource: "secrets"}, Version: "v1alpha1", Kind: "Secret"}
	name := secrets.Resource + "." + secrets.Group
	switch was, is := len(h.was.Discovered), len(w.Discovered); {
	case was < is:
		fields := testenv.CRDFields(secrets, nil)
		fields["spec"].(map[string]any)["scope"] = "Namespaced"
		changes = append(changes, func() { h.apply(kinds.CustomResourceDefinitions(), name, fields) })
	case was > is:
		changes = append(changes, func() { h.Kube.DeleteCRD(h.T, name) })
	}
	return changes
}

// settle waits until the statuses are about what is declared, and nothing happens any more.
func (h *storeHistory) settle(w modeltest.Declarations) {
	h.T.Helper()
	about := func(kind kinds.Kind, name string, types ...string) {
		testenv.AwaitObject(h.Env, kind, name, func(o *conditionedObject) error {
			for _, typ := range types {
				if c := meta.FindStatusCondition(o.Status.Conditions, typ); c == nil || c.ObservedGeneration != o.Generation {
					return fmt.Errorf("no %s at generation %d in %+v", typ, o.Generation, o.Status.Conditions)
				}
			}
			return nil
		})
	}
	about(kinds.Stores(), h.name, corev1alpha1.ModelSynced)
	for _, o := range objectsOf(w) {
		if o.kind == kinds.AuthorizationModels() {
			about(o.kind, h.nameOf(o), corev1alpha1.Merged)
		} else {
			about(o.kind, h.nameOf(o), iaplv1alpha1.Valid, iaplv1alpha1.Merged)
		}
	}
	h.AwaitCaughtUp(topology.StoreSync)
	h.AwaitNoCalls()
	h.AwaitCaughtUp(topology.StoreSync)
}

// conditionedObject is an object with conditions.
type conditionedObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// state reads what is live from OpenFGA, from store-sync's API, and from the statuses.
func (h *storeHistory) state(w modeltest.Declarations) (modeltest.LiveState, error) {
	h.T.Helper()
	store := h.store(h.name)
	s := modeltest.LiveState{Definitions: map[string]string{}, Owners: map[string]string{}, Live: map[string]string{}}
	latest, err := h.hand.ReadLatestModel(h.T.Context(), store.Status.StoreID)
	if err != nil {
		return s, err
	}
	for k, text := range modeltest.ModelDefinitions(latest) {
		s.Definitions[worldly(k)] = worldly(text)
	}
	got, err := clientOf(h.running).GetModel(h.T.Context(), &storev1.GetModelRequest{Name: h.name})
	if latest != nil && err != nil {
		return s, err
	}
	for _, d := range got.GetDefinitions() {
		s.Owners[worldly(definitionName(d))] = h.source(d.GetSource())
	}
	merged := map[string]bool{}
	for _, m := range store.Status.Modules {
		merged[h.source(m.Source)] = m.State == "Merged" || m.State == "Duplicate"
	}
	if merged["store/"+h.name] {
		s.Live[modeltest.CoreName] = w.Core
	}
	for _, d := range w.Discovered {
		if merged["discovered/"+d.Name] {
			s.Live["discovered/"+d.Name] = d.Text
		}
	}
	for _, m := range testenv.ListTyped[corev1alpha1.AuthorizationModel](h.Env, kinds.AuthorizationModels()) {
		if m.Spec.StoreRef.Name == h.name && meta.IsStatusConditionTrue(m.Status.Conditions, corev1alpha1.Merged) {
			h.addLive(s.Live, w, m)
		}
	}
	return s, nil
}

// addLive adds what a world declares of an AuthorizationModel that is live, or of the document that it is made of, if that is all live.
func (h *storeHistory) addLive(live map[string]string, w modeltest.Declarations, m *corev1alpha1.AuthorizationModel) {
	name := h.source("authorizationmodel/" + m.Name)
	if document := m.Annotations[corev1alpha1.DocumentAnnotation]; document != "" {
		name = h.source("policydocument/" + document)
	}
	for _, d := range w.Modules {
		if "authorizationmodel/"+d.Name == name {
			live[name] = d.Text
		}
	}
	for _, d := range w.Documents {
		if "policydocument/"+d.Name == name && samePolicy(served(d.Text), m.Annotations[corev1alpha1.PolicyAnnotation]) {
			live[name] = d.Text
		}
	}
}

func samePolicy(a, b string) bool {
	p, q := new(iaplv1alpha1.Policy), new(iaplv1alpha1.Policy)
	return yaml.Unmarshal([]byte(a), p) == nil && yaml.Unmarshal([]byte(b), q) == nil && equality.Semantic.DeepEqual(p, q)
}

// source returns what [modeltest.LiveState] calls an object.
func (h *storeHistory) source(source string) string {
	kind, name, _ := strings.Cut(source, "/")
	name = name[strings.LastIndexByte(name, '/')+1:]
	if kind == "policydocument" && name == corev1alpha1.Roles {
		return modeltest.RolesName
	}
	for key, known := range h.names {
		if known == name {
			_, name, _ = strings.Cut(key, "/")
		}
	}
	return strings.TrimSuffix(kind+"/"+name, "/")
}

func definitionName(d *storev1.Definition) string {
	switch {
	case d.GetCondition() != "":
		return "condition " + d.GetCondition()
	case d.GetRelation() != "":
		return d.GetType() + "#" + d.GetRelation()
	default:
		return d.GetType()
	}
}
