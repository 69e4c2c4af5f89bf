package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

const core = `module core

type user

type document
  relations
    define owner: [user]
`

// broken can be parsed and cannot live; typo cannot be parsed.
const (
	typo   = "module core\n\ntype user\n  relations\n    define owner [user]\n"
	broken = "module core\n\ntype user\n  relations\n    define owner: [nobody]\n"
)

// dsl returns a module with a type of the given name, which refers to the core module.
func dsl(name string) string {
	return fmt.Sprintf("module %s\n\ntype %s\n  relations\n    define reader: [user]\n", name, name)
}

// simulatedStore holds everything that a pass can observe, as plain data: the Store demo, its modules, and OpenFGA.
type simulatedStore struct {
	store   *corev1alpha1.Store
	gone    *corev1alpha1.Store
	earlier []*corev1alpha1.Store
	name    string
	modules []plan.ModelObject
	// protecting means that it is the Store of IAM.
	protecting bool
	// owners is the result of reading the owner of the OpenFGA store.
	owners plan.IAMStoreOwnerTuples
	rivals []plan.CompetingStore
	limits model.Limits
	refuse error
	resync bool
	// told holds the last statuses of modules by name, and of the Store.
	told      map[string]moduleplan.ObjectStatus
	toldStore moduleplan.ObjectStatus
	// notes are the Events about the Store in the last pass.
	notes []condition.EventContent
	// noRename is the open-source server's answer to a rename.
	noRename error

	fga  []*fgaStore
	made int
	// foreign holds OpenFGA stores that may belong to others.
	foreign []string
	// verbs are the actions taken, writes the number of those that changed anything.
	verbs  []plan.ActionVerb
	writes int
}

// fgaStore keeps its models when it is deleted, as OpenFGA does.
type fgaStore struct {
	plan.OpenFGAStore
	deleted bool
	models  []*openfgav1.AuthorizationModel
}

func newSimulatedStore(arrange ...func(*simulatedStore)) *simulatedStore {
	w := &simulatedStore{
		name: "demo", noRename: errors.New("not supported by this OpenFGA server"),
		store: &corev1alpha1.Store{
			ObjectMeta: metav1.ObjectMeta{Name: "demo", Generation: 1, UID: "first"},
			Spec:       corev1alpha1.StoreSpec{CoreModule: core},
		},
	}
	for _, f := range arrange {
		f(w)
	}
	return w
}

// inStep brings the Store in step with OpenFGA.
func inStep(w *simulatedStore) {
	w.pass(1000)
	w.verbs, w.writes = nil, 0
}

func withModules(texts ...string) func(*simulatedStore) {
	return func(w *simulatedStore) {
		for i, text := range texts {
			w.modules = append(w.modules, module(fmt.Sprintf("m%02d", i), text))
		}
	}
}

func module(name, text string) plan.ModelObject {
	return plan.ModelObject{
		Change: event.Change{Key: event.Key{Cluster: "local", Name: name}},
		Value: &corev1alpha1.AuthorizationModel{
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
			Spec:       corev1alpha1.AuthorizationModelSpec{StoreRef: corev1alpha1.StoreRef{Name: "demo"}, Model: text},
		},
	}
}

func addCompetingStore(cluster, id string, age time.Duration) func(*simulatedStore) {
	return func(w *simulatedStore) {
		w.rivals = append(w.rivals, plan.CompetingStore{
			Change: event.Change{Key: event.Key{Cluster: cluster, Name: w.name}},
			Value: &corev1alpha1.Store{
				ObjectMeta: metav1.ObjectMeta{Name: w.name, CreationTimestamp: metav1.NewTime(w.store.CreationTimestamp.Add(-age))},
				Status:     corev1alpha1.StoreStatus{StoreID: id},
			},
		})
	}
}

// addStoreRecordingSameID adds another Store of this cluster that records an OpenFGA store.
func addStoreRecordingSameID(name, id string, age time.Duration) func(*simulatedStore) {
	return func(w *simulatedStore) {
		addCompetingStore("local", id, age)(w)
		r := &w.rivals[len(w.rivals)-1]
		r.Key.Name, r.Value.Name = name, name
	}
}

// exists adds an OpenFGA store of another owner.
func exists(name string, models ...*openfgav1.AuthorizationModel) func(*simulatedStore) {
	return func(w *simulatedStore) { w.create(name).models = models }
}

func foreignModel() *openfgav1.AuthorizationModel {
	return &openfgav1.AuthorizationModel{Id: "foreign", SchemaVersion: "1.2", TypeDefinitions: []*openfgav1.TypeDefinition{{Type: "alien"}}}
}

func (w *simulatedStore) create(name string) *fgaStore {
	w.made++
	s := &fgaStore{OpenFGAStore: plan.OpenFGAStore{ID: fmt.Sprintf("id%d", w.made), Name: name, CreatedAt: time.Unix(int64(w.made), 0)}}
	w.fga = append(w.fga, s)
	return s
}

func (w *simulatedStore) find(id string) *fgaStore {
	i := slices.IndexFunc(w.fga, func(s *fgaStore) bool { return s.ID == id })
	if i < 0 {
		return &fgaStore{deleted: true}
	}
	return w.fga[i]
}

// alive returns the stores that OpenFGA lists.
func (w *simulatedStore) alive() []string {
	var ids []string
	for _, s := range w.fga {
		if !s.deleted {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func (w *simulatedStore) input() plan.Input {
	in := plan.Input{
		Key: event.Key{Cluster: "local", Name: w.name}, Store: w.store, Gone: w.gone, Earlier: w.earlier,
		Modules: w.modules, Rivals: w.rivals, Resync: w.resync, Now: metav1.NewTime(time.Unix(1000, 0)),
	}
	if w.protecting {
		in.Provided = []model.Module{{Origin: model.ModuleOrigin{Kind: model.IAM}, Types: model.PendingTypes{}}}
	}
	if len(w.name) < 3 {
		in.NameErr = fmt.Errorf("%q is not a name for an OpenFGA store", w.name)
	}
	if in.Store != nil && in.Store.DeletionTimestamp == nil {
		first, others := plan.ModuleSources(in)
		in.Merged, in.MergeErr = model.Merge(first, others, w.limits)
	}
	return in
}

// pass takes at most so many steps. A pass that is cut off loses what it observed, as in a crash.
func (w *simulatedStore) pass(steps int) {
	obs := plan.Observed{Foreign: w.foreign}
	w.notes = nil
	for range steps {
		a := plan.NextAction(w.input(), obs)
		w.verbs = append(w.verbs, a.Verb)
		w.do(a, &obs)
		if a.Verb == plan.WriteStatus {
			return
		}
	}
}

func (w *simulatedStore) do(a plan.Action, obs *plan.Observed) {
	s := w.find(a.StoreID)
	wrote := true
	switch a.Verb {
	case plan.AddFinalizer:
		w.store.Finalizers = append(w.store.Finalizers, corev1alpha1.StoreFinalizer)
	case plan.RemoveFinalizer:
		w.store = nil
	case plan.CreateStore:
		obs.Created = w.create(w.name).ID
	case plan.WriteModel:
		wrote = w.refuse == nil
		if obs.Refused = w.refuse; wrote {
			w.made++
			m := proto.CloneOf(a.Model)
			m.Id = fmt.Sprintf("model%d", w.made)
			s.models = append(s.models, m)
			obs.LatestOf, obs.Latest, obs.Written = a.StoreID, m, true
		}
	case plan.RenameStore:
		wrote = w.noRename == nil
		if obs.RenameErr, obs.Renamed = w.noRename, wrote; wrote {
			s.Name = w.name
		}
	case plan.DeleteStore:
		s.deleted, obs.Deleted, obs.Absent = true, a.StoreID, append(obs.Absent, a.StoreID)
	case plan.Record:
		w.write(*obs)
	case plan.RecordLive:
		store, modules := plan.StatusesToWriteBeforeModel(w.input())
		if store != nil {
			w.store.Status.Live, w.store.Status.ModelDigest = store.Live, store.ModelDigest
		}
		for _, m := range w.modules {
			if status, ok := modules[m.Key]; ok {
				m.Value.Status.Live, m.Value.Status.ModelDigest = status.Live, status.ModelDigest
			}
		}
	case plan.WriteStatus:
		wrote = false
		w.writeStatuses(*obs)
	default:
		wrote = false
		w.answer(a, s, obs)
	}
	if wrote {
		w.writes++
	}
}

func (w *simulatedStore) answer(a plan.Action, s *fgaStore, obs *plan.Observed) {
	switch a.Verb {
	default:
		obs.Listed, obs.Named = true, nil
		for _, s := range w.fga {
			if s.Name == w.name && !s.deleted {
				obs.Named = append(obs.Named, s.OpenFGAStore)
			}
		}
	case plan.GetStore:
		if s.deleted {
			obs.Missing, obs.Absent = a.StoreID, append(obs.Absent, a.StoreID)
		} else {
			obs.Found = s.OpenFGAStore
		}
	case plan.FindOwners:
		obs.OwnersOf, obs.Owners = a.StoreID, w.owners
	case plan.LatestModel:
		obs.LatestOf, obs.Latest = a.StoreID, nil
		if n := len(s.models); n > 0 {
			obs.Latest = s.models[n-1]
		}
	}
}

func (w *simulatedStore) writeStatuses(obs plan.Observed) {
	in := w.input()
	w.told = map[string]moduleplan.ObjectStatus{}
	for _, m := range w.modules {
		status := plan.DesiredModuleStatus(m.Value, plan.ModuleVerdict(in, obs, m.Key))
		if w.told[m.Value.Name] = status; !status.Same {
			w.writes++
			fields := status.Fields.(corev1alpha1.AuthorizationModelStatus)
			fields.StoreID = m.Value.Status.StoreID
			m.Value.Status = fields
		}
	}
	if w.store != nil {
		w.write(obs)
	}
}

// write applies our part of the status, as server-side apply would.
func (w *simulatedStore) write(obs plan.Observed) {
	before, in := w.store.Status, w.input()
	status := plan.DesiredStoreStatus(in, obs)
	if w.toldStore = plan.StoreStatusWithOutcome(in, obs, status); w.toldStore.Same {
		return
	}
	w.writes++
	w.notes = append(w.notes, w.toldStore.Notes...)
	status.ManagedTuplesStoreID = before.ManagedTuplesStoreID
	w.store.Status = status
}

// conditions returns "Type=Status/Reason" of the Store, and "name:Type=…" of modules.
func (w *simulatedStore) conditions() []string {
	var all []string
	add := func(prefix string, conditions []metav1.Condition) {
		for _, c := range conditions {
			all = append(all, fmt.Sprintf("%s%s=%s/%s", prefix, c.Type, c.Status, c.Reason))
		}
	}
	if w.store != nil {
		add("", w.store.Status.Conditions)
	}
	for _, m := range w.modules {
		add(m.Value.Name+":", m.Value.Status.Conditions)
	}
	return all
}

func (w *simulatedStore) expectConditions(t *testing.T, want ...string) {
	t.Helper()
	got := w.conditions()
	for _, c := range want {
		if !slices.Contains(got, c) {
			t.Errorf("condition %s is missing; got\n  %s", c, strings.Join(got, "\n  "))
		}
	}
}

func (w *simulatedStore) message(kind string) string {
	if c := meta.FindStatusCondition(w.store.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}
