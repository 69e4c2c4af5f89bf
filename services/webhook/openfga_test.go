package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/iam"
)

var errDown = errors.New("down")

// answers is a backend with fixed answers.
type answers struct {
	allowed bool
	err     error
	// unanswered is the error of checks only.
	unanswered error
	owners     []iam.Tuple
	asked      []*openfgav1.CheckRequest
	reads      int
}

func (a *answers) Check(_ context.Context, r *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	a.asked = append(a.asked, r)
	return &openfgav1.CheckResponse{Allowed: a.allowed}, errors.Join(a.err, a.unanswered)
}

func (a *answers) ReadStoreOwnerTuples(context.Context, string) ([]iam.Tuple, error) {
	a.reads++
	return a.owners, a.err
}

// asking returns a decider about trees, in a store that belongs to this cluster.
func asking(a *answers) (*openFGADecider, *corev1alpha1.Store) {
	x := authz.New(nil)
	p := &iamv1alpha1.ProtectedResource{}
	p.Name, p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "trees", "a", "Tree", "trees", []string{"get"}
	x.SetProtectedResource("trees", p)
	x.SetUser("sleeper", &iamv1alpha1.User{Status: iamv1alpha1.UserStatus{State: "Inactive"}})
	store := &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{Name: "iam"}}
	store.Status.StoreID, store.Status.AuthorizationModelID = "S", "M"
	a.owners = []iam.Tuple{iam.StoreOwnerTuple("iam", "c")}
	return &openFGADecider{
		backend: a, index: func() (*authz.Index, error) { return x, nil }, store: func() *corev1alpha1.Store { return store },
		cluster: func(context.Context) (string, error) { return "c", nil }, seconds: newCheckSeconds(),
	}, store
}

// bound returns n groups that are each bound to all trees.
func bound(x *authz.Index, n int) (groups []string) {
	for i := range n {
		group := fmt.Sprint("system:", i)
		groups = append(groups, group)
		x.SetBinding("n", group, bindingOf(iamv1alpha1.Subject{Kind: iamv1alpha1.GroupKind, Name: group}))
	}
	return groups
}

func bindingOf(subject iamv1alpha1.Subject) *iamv1alpha1.PolicyBinding {
	b := &iamv1alpha1.PolicyBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "n", UID: "2"}}
	b.Spec.RoleRef.Name, b.Spec.Subjects = "viewer", []iamv1alpha1.Subject{subject}
	b.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "a", Kind: "Tree"}
	return b
}

func treeOf(user string) authz.Query {
	return authz.Query{Subject: authz.Subject{User: user}, Permission: "a/trees.get", Type: "a/Tree", Name: "oak"}
}

func TestOpenFGACheckUsesModelAndHigherConsistency(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		a := &answers{allowed: allowed}
		o, _ := asking(a)
		if _, got, err := o.Decide(t.Context(), treeOf("alice")); got != allowed || err != nil || len(a.asked) != 1 {
			t.Fatalf("got %v, %v after %d checks", got, err, len(a.asked))
		}
		r := a.asked[0]
		if r.GetStoreId() != "S" || r.GetAuthorizationModelId() != "M" || r.GetConsistency() != openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY ||
			r.GetTupleKey().GetUser() != iam.UserSubject("alice") || r.GetTupleKey().GetObject() != "a/Tree:oak" {
			t.Errorf("got request %v", r)
		}
	}
}

// TestUnavailableOpenFGAIsError lets OpenFGA always answer yes. No case may return that yes.
func TestUnavailableOpenFGAIsError(t *testing.T) {
	other := iam.StoreOwnerTuple("iam", "another")
	for name, change := range map[string]func(*answers, *openFGADecider, *corev1alpha1.Store, *authz.Query){
		"OpenFGA is down":                func(a *answers, _ *openFGADecider, _ *corev1alpha1.Store, _ *authz.Query) { a.err = errDown },
		"OpenFGA says yes with an error": func(a *answers, _ *openFGADecider, _ *corev1alpha1.Store, _ *authz.Query) { a.unanswered = errDown },
		"there is no Store": func(_ *answers, o *openFGADecider, _ *corev1alpha1.Store, _ *authz.Query) {
			o.store = func() *corev1alpha1.Store { return nil }
		},
		"no store in OpenFGA": func(_ *answers, _ *openFGADecider, s *corev1alpha1.Store, _ *authz.Query) { s.Status.StoreID = "" },
		"no model": func(_ *answers, _ *openFGADecider, s *corev1alpha1.Store, _ *authz.Query) {
			s.Status.AuthorizationModelID = ""
		},
		"no owner of the store": func(a *answers, _ *openFGADecider, _ *corev1alpha1.Store, _ *authz.Query) { a.owners = nil },
		"store of another cluster": func(a *answers, _ *openFGADecider, _ *corev1alpha1.Store, _ *authz.Query) {
			a.owners = []iam.Tuple{other}
		},
		"store of two clusters": func(a *answers, _ *openFGADecider, _ *corev1alpha1.Store, _ *authz.Query) {
			a.owners = append(a.owners, other)
		},
		"UID of the cluster unknown": func(_ *answers, o *openFGADecider, _ *corev1alpha1.Store, _ *authz.Query) {
			o.cluster = func(context.Context) (string, error) { return "", errDown }
		},
		"User and account": func(_ *answers, _ *openFGADecider, _ *corev1alpha1.Store, q *authz.Query) { q.Account = "1" },
	} {
		t.Run(name, func(t *testing.T) {
			a, q := &answers{allowed: true}, treeOf("alice")
			o, store := asking(a)
			change(a, o, store, &q)
			if _, allowed, err := o.Decide(t.Context(), q); allowed || !fault.IsUnavailable(err) {
				t.Errorf("got %v, %v", allowed, err)
			}
		})
	}
}

// lastGroup answers yes to checks with a certain group.
type lastGroup struct {
	*answers
	group string
}

func (l lastGroup) Check(_ context.Context, r *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	for _, t := range r.GetContextualTuples().GetTupleKeys() {
		if strings.Contains(t.GetObject()+t.GetUser(), l.group) {
			return &openfgav1.CheckResponse{Allowed: true}, nil
		}
	}
	return &openfgav1.CheckResponse{}, nil
}

func TestOpenFGACheckIsSplitForManyGroups(t *testing.T) {
	a := &answers{}
	o, _ := asking(a)
	q := treeOf("alice")
	q.Groups = bound(o.told(), 3*maxContext)
	c, _ := o.told().ToOpenFGACheck(q)
	parts := c.SplitContext(maxContext)
	last := parts[len(parts)-1].Context
	for group, want := range map[string]bool{last[len(last)-1].Object: true, "nobody's": false} {
		o.backend = lastGroup{a, group}
		if _, allowed, err := o.Decide(t.Context(), q); allowed != want || err != nil {
			t.Errorf("member of %q: got allowed %t (%v), want %t", group, allowed, err, want)
		}
	}
}

func TestOpenFGAIsNotCalledForUnknownPermission(t *testing.T) {
	unregistered, absent := treeOf("alice"), treeOf("alice")
	unregistered.Permission, absent.RequireExists = "a/trees.fell", true
	for name, q := range map[string]authz.Query{"unregistered": unregistered, "not there": absent, "inactive": treeOf("sleeper")} {
		a := &answers{allowed: true}
		o, _ := asking(a)
		if _, allowed, err := o.Decide(t.Context(), q); allowed || err != nil || len(a.asked) != 0 {
			t.Errorf("%s: got %v, %v after %d checks", name, allowed, err, len(a.asked))
		}
	}
}

// TestIndexDecidesForTooManyOwners gives an object more owners than the index visits. OpenFGA would visit all,
// so only the index is used and the answers agree.
func TestIndexDecidesForTooManyOwners(t *testing.T) {
	for owners, asked := range map[int]int{authz.MaxOwners: 1, authz.MaxOwners + 1: 0} {
		a := &answers{allowed: true}
		o, _ := asking(a)
		x, oak := o.told(), &iam.BindingTarget{UID: "2"}
		for i := range owners {
			oak.Owners = append(oak.Owners, iam.Owner{Type: "a/Wood", Name: fmt.Sprint("wood", i), UID: "3"})
		}
		x.SetTarget("a/Tree", "", "oak", oak)
		if _, allowed, err := o.Decide(t.Context(), treeOf("alice")); allowed != (asked == 1) || err != nil || len(a.asked) != asked {
			t.Errorf("%d owners: got %v, %v after %d checks", owners, allowed, err, len(a.asked))
		}
		a.allowed = asked == 0 // The fake answers no if it is to be called.
		x.SetRole("n", "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}})
		q := treeOf("alice")
		q.Groups = bound(x, 1)
		if _, allowed, err := o.Decide(t.Context(), q); allowed != (asked == 0) || err != nil || len(a.asked) != 2*asked {
			t.Errorf("%d owners, subject with a role: got %v, %v after %d checks", owners, allowed, err, len(a.asked))
		}
	}
}

func TestIndexDecidesForTooManyGroups(t *testing.T) {
	const most = maxParts * (maxContext - 1) // The object itself needs one tuple in each part.
	for groups, asked := range map[int]int{most: maxParts, most + 1: 0} {
		a := &answers{}
		o, _ := asking(a)
		q := treeOf("alice")
		q.Groups = bound(o.told(), groups)
		o.told().SetRole("n", "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}})
		if _, allowed, err := o.Decide(t.Context(), q); allowed != (asked == 0) || err != nil || len(a.asked) != asked {
			t.Errorf("%d groups: got %v, %v after %d checks", groups, allowed, err, len(a.asked))
		}
	}
}

// TestIndexDecidesForTooManyParents gives an object more parents than OpenFGA accepts with a check. The
// index then decides, so access is not lost.
func TestIndexDecidesForTooManyParents(t *testing.T) {
	for parents, asked := range map[int]int{maxContext - 2: 1, maxContext: 0} { // The object itself needs one tuple.
		a := &answers{}
		o, _ := asking(a)
		x, oak := o.told(), &iam.BindingTarget{UID: "2"}
		for kind, plural := range map[string]string{"Wood": "woods", "Tree": "trees"} {
			p := &iamv1alpha1.ProtectedResource{}
			p.Name, p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = plural, "a", kind, plural, []string{"get"}
			if kind == "Tree" {
				p.Spec.ParentResources = []iamv1alpha1.ParentResourceRef{{APIGroup: "a", Kind: "Wood"}}
			}
			x.SetProtectedResource(plural, p)
		}
		for i := range parents {
			x.SetTarget("a/Wood", "", fmt.Sprint("wood", i), &iam.BindingTarget{UID: "3"})
			oak.Owners = append(oak.Owners, iam.Owner{Type: "a/Wood", Name: fmt.Sprint("wood", i), UID: "3"})
		}
		x.SetTarget("a/Tree", "", "oak", oak)
		x.SetRole("n", "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}})
		q := treeOf("alice")
		q.Groups = bound(x, 1)
		if _, allowed, err := o.Decide(t.Context(), q); allowed != (asked == 0) || err != nil || len(a.asked) != asked {
			t.Errorf("%d parents: got %v, %v after %d checks", parents, allowed, err, len(a.asked))
		}
		for _, r := range a.asked {
			if n := len(r.GetContextualTuples().GetTupleKeys()); n != maxContext {
				t.Errorf("%d parents: got %d contextual tuples", parents, n)
			}
		}
	}
}

func TestStoreOwnerIsVerifiedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{allowed: true}
		o, store := asking(a)
		may := func() bool { _, allowed, _ := o.Decide(t.Context(), treeOf("alice")); return allowed }
		first, second := may(), may()
		if !first || !second || a.reads != 1 {
			t.Errorf("got allowed %t and %t after %d reads, want one read", first, second, a.reads)
		}
		a.owners = nil
		if store.Status.StoreID = "another"; may() {
			t.Error("the cached ownership of another store was used")
		}
		if store.Status.StoreID = "S"; !may() {
			t.Error("the cached ownership of the store was not used")
		}
		if backoff.Sleep(t.Context(), adoptionTTL); may() {
			t.Error("the ownership is cached longer than adoptionTTL")
		}
	})
}

// told returns the index of o.
func (o *openFGADecider) told() *authz.Index {
	x, _ := o.index() // The index of a test always exists.
	return x
}
