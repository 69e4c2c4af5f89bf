package derived

import (
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// owner returns the tuple that names a cluster as the owner of the store.
func owner(cluster string) tuple.Tuple { return fromIAMTuple(iam.StoreOwnerTuple("iam", cluster)) }

// declare has the Store be so, with its OpenFGA store.
func (b *reconcilerEnv) declare(spec corev1alpha1.StoreSpec) {
	b.t.Helper()
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{Spec: spec, Status: corev1alpha1.StoreStatus{StoreID: "store", AuthorizationModelID: "M"}})
	b.work()
}

// tells is what an object says of being ready.
func (b *reconcilerEnv) tells(kind kinds.Kind, name string) string {
	b.t.Helper()
	var o iamv1alpha1.PolicyBinding // All have their conditions in the same place.
	if err := b.api[b.keyOf(kind, name)].Decode(&o); err != nil {
		b.t.Fatal(err)
	}
	ready := meta.FindStatusCondition(o.Status.Conditions, iamv1alpha1.Ready)
	if ready == nil {
		return ""
	}
	return string(ready.Status) + "/" + ready.Reason
}

func namesOwner(t *openfgav1.Tuple) bool {
	k := t.GetKey()
	return iam.IsStoreOwnerTuple(iam.Tuple{User: k.GetUser(), Relation: k.GetRelation(), Object: k.GetObject()}) || strings.HasPrefix(k.GetObject(), "store:")
}

// gauge returns the value of a metric of the derived tuples.
func (b *reconcilerEnv) gauge(name string) float64 {
	b.t.Helper()
	families, err := b.metrics.Gather()
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	b.t.Fatalf("no metric %s (%v)", name, err)
	return 0
}

func (b *reconcilerEnv) wantAll(want string) {
	b.t.Helper()
	for name, kind := range map[string]kinds.Kind{"viewer": kinds.IAMRoles(), "bob": kinds.PolicyBindings(), "alice-staff": kinds.GroupMemberships()} {
		if got := b.tells(kind, name); !strings.HasPrefix(got, want) {
			b.t.Errorf("%s %s says %q, want %s", kind.Kind, name, got, want)
		}
	}
}

// fillWithForeignTuples has a store that others have filled before IAM finds it.
func fillWithForeignTuples(t *testing.T, held ...tuple.Tuple) (b *reconcilerEnv, theirs []string) {
	t.Helper()
	b = newReconcilerEnv(t)
	b.drop(kinds.Stores(), "iam")
	b.work()
	b.openFGA.tuples, b.openFGA.writes = nil, nil
	for _, h := range append(held, undeclaredTuple("their-user"), tuple.Tuple{ID: tuple.ID{Object: "their/thing:1", Relation: "owner", User: "their/user:x"}}) {
		b.openFGA.change(h, true)
	}
	return b, b.openFGA.holds()
}

func declaring(cluster string) corev1alpha1.StoreSpec {
	o := owner(cluster)
	return corev1alpha1.StoreSpec{Tuples: []corev1alpha1.Tuple{{Object: o.Object, Relation: o.Relation, User: o.User}}}
}

// Existing stores of the same name, with types of the same names, lose nothing when IAM is installed.
func TestForeignStoreIsNotWritten(t *testing.T) {
	for name, test := range map[string]struct {
		spec corev1alpha1.StoreSpec
		held []tuple.Tuple
	}{
		"nobody's":                        {},
		"another cluster's":               {held: []tuple.Tuple{owner("another")}},
		"another cluster's, by its Store": {spec: declaring("another"), held: []tuple.Tuple{owner("another")}},
		"another cluster's, by another name of the Store, and ours": {
			spec: declaring("this"), held: []tuple.Tuple{fromIAMTuple(iam.StoreOwnerTuple("permissions", "another")), owner("this")},
		},
		"another cluster's and ours": {spec: declaring("this"), held: []tuple.Tuple{owner("another"), owner("this")}},
		"ours under a condition": {held: []tuple.Tuple{{ID: owner("this").ID}}, spec: corev1alpha1.StoreSpec{
			Tuples: []corev1alpha1.Tuple{{Object: owner("this").Object, Relation: "owner", User: owner("this").User, Condition: &corev1alpha1.TupleCondition{Name: "c"}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, theirs := fillWithForeignTuples(t, test.held...)
			if name == "ours under a condition" {
				b.openFGA.tuples[0].Key.Condition = &openfgav1.RelationshipCondition{Name: "c"}
			}
			b.declare(test.spec)
			b.peopled()
			b.follow()
			if held := b.openFGA.holds(); !slices.Equal(held, theirs) || len(b.openFGA.writes) > 0 {
				t.Fatalf("it holds %v, want %v", held, theirs)
			}
			b.wantAll("False/" + iamv1alpha1.NotAdopted)
			told := slices.DeleteFunc(slices.Clone(b.notes), func(n condition.EventContent) bool { return n.Reason != iamv1alpha1.NotAdopted })
			if len(told) != 1 || !strings.Contains(told[0].Message, "entail iam adopt --dry-run") {
				t.Errorf("told is %v", told)
			}
			if b.gauge("entail_iam_store_not_adopted") != 1 {
				t.Error("nothing counts it")
			}
			b.declare(adoptingStore())
			b.follow()
			b.wantAll("True/")
			if b.openFGA.tuples = slices.DeleteFunc(b.openFGA.tuples, namesOwner); b.gauge("entail_iam_store_not_adopted") != 0 {
				t.Error("it is counted for ever")
			}
			b.inStep("taken over,")
		})
	}
}

// What store-sync made says whose it is, but a moment after it is there: nobody is told otherwise in between.
func TestStoreIsAdoptedAfterOwnerTuple(t *testing.T) {
	b, theirs := fillWithForeignTuples(t)
	b.declare(declaring("this"))
	b.peopled()
	if held := b.openFGA.holds(); !slices.Equal(held, theirs) || len(b.notes) > 0 {
		t.Fatalf("it holds %v, told is %v", held, b.notes)
	}
	b.wantAll("")
	b.openFGA.change(owner("this"), true)
	b.follow()
	b.wantAll("True/")
	b.openFGA.change(owner("this"), false) // Who may write there takes it away, and opens a door.
	b.openFGA.change(undeclaredTuple("eve"), true)
	b.openFGA.change(owner("another"), true)
	b.follow()
	b.openFGA.tuples = slices.DeleteFunc(b.openFGA.tuples, namesOwner)
	b.inStep("though its owner was taken away,")
	b.declare(corev1alpha1.StoreSpec{}) // Nobody says any more that it is ours.
	b.openFGA.change(undeclaredTuple("eve"), true)
	before := b.openFGA.holds()
	b.follow()
	if after := b.openFGA.holds(); !slices.Equal(before, after) {
		t.Errorf("it holds %v, want %v", after, before)
	}
	b.wantAll("False/" + iamv1alpha1.NotAdopted)
}

// A store with tuples of others is adopted only if the API server returns the Store that asks for it.
func TestAdoptionIsVerifiedAtAPIServer(t *testing.T) {
	b, theirs := fillWithForeignTuples(t)
	b.declare(corev1alpha1.StoreSpec{})
	is := b.api[b.keyOf(kinds.Stores(), "iam")]
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{Spec: adoptingStore(), Status: corev1alpha1.StoreStatus{StoreID: "store", AuthorizationModelID: "M"}})
	b.api[is.Key] = is
	b.try(20)
	if held := b.openFGA.holds(); !slices.Equal(held, theirs) {
		t.Errorf("it holds %v, want %v", held, theirs)
	}
}

// A Store that is not ours is deleted without us, and its OpenFGA store stays as it is.
func TestForeignStoreDoesNotGetFinalizer(t *testing.T) {
	b, theirs := fillWithForeignTuples(t)
	b.declare(corev1alpha1.StoreSpec{})
	b.unprotect()
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}, Status: corev1alpha1.StoreStatus{StoreID: "store", AuthorizationModelID: "M"},
	})
	b.work()
	if held := b.openFGA.holds(); !b.IsIAMStoreEmptied() || !slices.Equal(held, theirs) {
		t.Errorf("it may go: %v; it holds %v", b.IsIAMStoreEmptied(), held)
	}
}

// A status must not report success while no store exists.
func TestObjectsAreNotReadyWithoutStore(t *testing.T) {
	for name, lose := range map[string]func(*reconcilerEnv){
		"the Store is gone":               func(b *reconcilerEnv) { b.drop(kinds.Stores(), "iam") },
		"the Store names none":            func(b *reconcilerEnv) { b.put(kinds.Stores(), "iam", &corev1alpha1.Store{Spec: adoptingStore()}) },
		"OpenFGA does not have it":        func(b *reconcilerEnv) { b.openFGA.gone = true; b.ask(Key{sort: tail}) },
		"it is to go, and all kinds went": func(b *reconcilerEnv) { b.unprotect(); b.doom() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			b.peopled()
			b.wantAll("True/")
			lose(b)
			b.try(3)
			delete(b.dirty, Key{sort: tail}) // It waits longer each time.
			b.work()
			b.wantAll("Unknown/" + iamv1alpha1.NoIAMStore)
			if name == "it is to go, and all kinds went" {
				return
			}
			b.openFGA.gone = false
			b.declare(adoptingStore())
			b.follow()
			b.wantAll("True/")
			b.inStep("with a store again,")
		})
	}
}

// Changes made while the Store named no store are applied when it names the same store again.
func TestChangesWithoutStoreAreAppliedLater(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{Spec: adoptingStore()})
	b.done = nil
	b.drop(kinds.PolicyBindings(), "bob")
	for k := range b.dirty {
		if k.sort == tail { // It has no turn in between.
			delete(b.dirty, k)
		}
	}
	b.work()
	b.declare(adoptingStore())
	b.inStep("naming it again,")
}

// An administrator can list the losses before an adoption.
func TestPreviewAdoptionListsRemovedTuples(t *testing.T) {
	b, theirs := fillWithForeignTuples(t)
	tuples := func() (all []tuple.Tuple) {
		for _, h := range b.openFGA.tuples {
			all = append(all, tuple.FromOpenFGA(h.GetKey()))
		}
		return all
	}
	preview := func(adopted bool, want int) {
		t.Helper()
		p, err := b.PreviewAdoption(t.Context())
		if goes := p.UndeclaredTuples(tuples()); err != nil || p.StoreID != "store" || p.Adopted != adopted || len(goes) != want || (p.Message == "") != adopted {
			t.Errorf("it is %+v (%v), and there go %v, want %d", p, err, goes, want)
		}
	}
	b.openFGA.change(tuple.Tuple{ID: tuple.ID{Object: "doc:1", Relation: "owner", User: "user:1"}}, true)
	preview(false, len(theirs)) // There is no Store, but one of its name in OpenFGA.
	b.declare(corev1alpha1.StoreSpec{})
	b.peopled()
	for _, w := range b.wanted()[:1] {
		object, rest, _ := strings.Cut(w, "#")
		relation, user, _ := strings.Cut(rest, "@")
		b.openFGA.change(tuple.Tuple{ID: tuple.ID{Object: object, Relation: relation, User: user}}, true)
	}
	preview(false, len(theirs)) // What is wanted stays.
	b.declare(adoptingStore())
	b.follow()
	preview(true, 0)
	b.openFGA.gone = true
	b.drop(kinds.Stores(), "iam")
	if p, err := b.PreviewAdoption(t.Context()); err != nil || p.StoreID != "" {
		t.Errorf("it is %+v (%v)", p, err)
	}
}
