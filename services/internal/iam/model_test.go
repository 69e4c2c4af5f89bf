package iam

import (
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/proto"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

func modelOf(r *Registry) *openfgav1.AuthorizationModel {
	return &openfgav1.AuthorizationModel{SchemaVersion: typesystem.SchemaVersion1_2, TypeDefinitions: r.Types()}
}

func bytesOf(t *testing.T, r *Registry) string {
	t.Helper()
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(modelOf(r))
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestTheModelIsValidAndTheSameInAnyOrder(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(seed)
		first := bytesOf(t, Register(w.resources))
		w.Shuffle(len(w.resources), func(i, j int) { w.resources[i], w.resources[j] = w.resources[j], w.resources[i] })
		if bytesOf(t, Register(w.resources)) != first {
			t.Errorf("world %d: the model depends on the order", seed)
		}
		if _, err := typesystem.NewAndValidate(t.Context(), modelOf(Register(w.resources))); err != nil {
			t.Errorf("world %d: %v", seed, err)
		}
	}
}

func TestWithoutKindsThereIsAModel(t *testing.T) {
	if _, err := typesystem.NewAndValidate(t.Context(), modelOf(Register(nil))); err != nil {
		t.Error(err)
	}
}

func TestEveryTypeIsIAMs(t *testing.T) {
	for _, typ := range Register(newWorld(1).resources).Types() {
		if !Owns(typ.GetType()) {
			t.Errorf("%s is somebody's", typ.GetType())
		}
	}
	if Owns("workspace") {
		t.Error("a type of a module in DSL is IAM's")
	}
}

// Thirty-three kinds are what the largest published set has.
func TestFiftyKindsOfTenVerbsFitADefaultServer(t *testing.T) {
	resources := []*iamv1alpha1.ProtectedResource{
		resource(1, "resourcemanager.miloapis.com/Organization", "organizations"),
		resource(2, "resourcemanager.miloapis.com/Project", "projects", "resourcemanager.miloapis.com/Organization"),
	}
	for i := range 100 {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26))
		resources = append(resources, permitting(resource(3+i, "compute.miloapis.com/Kind"+name, "kinds"+name, "resourcemanager.miloapis.com/Project"),
			"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind"))
	}
	fit := len(Within(resources, Room{100, 256 << 10}).Kinds())
	t.Logf("%d kinds of ten verbs fit", fit)
	if fit < 50 {
		t.Errorf("only %d kinds fit", fit)
	}
}

func TestWhatARoleGives(t *testing.T) {
	role := func(namespace, name string, permissions []string, inherited ...string) *iamv1alpha1.Role {
		r := &iamv1alpha1.Role{}
		r.Namespace, r.Name, r.Spec.IncludedPermissions = namespace, name, permissions
		for _, ref := range inherited {
			ns, n, _ := strings.Cut(ref, "/")
			r.Spec.InheritedRoles = append(r.Spec.InheritedRoles, iamv1alpha1.ScopedRoleReference{Namespace: ns, Name: n})
		}
		return r
	}
	a := role("one", "a", []string{"a/trees.get"}, "/b", "two/b", "/gone")
	w := &world{resources: []*iamv1alpha1.ProtectedResource{permitting(resource(1, "a/Tree", "trees"), "get", "list", "create")}}
	w.roles = []*iamv1alpha1.Role{
		a, role("one", "b", []string{"a/trees.list", "a/trees.fell"}, "/a"), role("two", "b", []string{"a/trees.create"}, "/b", "/c"), role("one", "c", []string{"x"}),
	}
	got := w.objects().Effective(a)
	for what, pair := range map[string][2][]string{
		"all":     {got.All, {"a/trees.create", "a/trees.fell", "a/trees.get", "a/trees.list"}},
		"unknown": {got.Unknown, {"a/trees.fell"}},
		"missing": {got.Missing, {"one/gone", "two/c"}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s are %v, want %v", what, pair[0], pair[1])
		}
	}
}

func TestWhatIsSaidOfASubjectAndATarget(t *testing.T) {
	w := newWorld(7)
	u := &iamv1alpha1.User{}
	u.Name, u.UID = "u", "1"
	g := &iamv1alpha1.Group{}
	g.Namespace, g.Name, g.UID = "ns", "g", "2"
	w.users, w.groups, w.accounts = append(w.users, u), append(w.groups, g), nil
	o := w.objects()
	for reason, subjects := range map[string][]iamv1alpha1.Subject{
		"": {
			{Kind: "User", Name: "u", UID: "1"},
			{Kind: "Group", Name: "g", Namespace: "ns", UID: "2"},
			{Kind: "Group", Name: "system:x"},
			{Kind: "Group", Name: "oidc:x", UID: "whatever"},
			{Kind: "ServiceAccount", Name: "s", Namespace: "core", UID: "3"},
		},
		iamv1alpha1.UIDMissing:        {{Kind: "User", Name: "u"}, {Kind: "Group", Name: "g", Namespace: "ns"}, {Kind: "ServiceAccount", Name: "s"}},
		iamv1alpha1.UIDMismatch:       {{Kind: "User", Name: "u", UID: "2"}, {Kind: "Group", Name: "g", Namespace: "ns", UID: "1"}},
		iamv1alpha1.NotFound:          {{Kind: "User", Name: "v", UID: "1"}, {Kind: "Group", Name: "g", Namespace: "no", UID: "2"}, {Kind: "ServiceAccount", Name: "s", UID: "3"}},
		iamv1alpha1.NamespaceMissing:  {{Kind: "Group", Name: "g", UID: "2"}},
		iamv1alpha1.KindNotRecognized: {{Kind: "Robot", Name: "r", UID: "1"}},
	} {
		for _, s := range subjects {
			if subject, got := o.Subject(s); got != reason || (subject == "") != (reason != "") {
				t.Errorf("%+v is %q, %q; want %q", s, subject, got, reason)
			}
		}
	}
	for first, want := range map[iamv1alpha1.Member]string{
		{}: iamv1alpha1.UIDMissing, {Name: "u", UID: "1"}: "", {Name: "u", UID: "0"}: iamv1alpha1.UIDMismatch, {Name: "v", UID: "1"}: iamv1alpha1.UIDMissing,
	} {
		m := &iamv1alpha1.GroupMembership{}
		if m.Spec.UserRef.Name = "u"; first.Name != "" {
			m.Status.User = &first
		}
		if got, reason := o.Member(m); reason != want || (got == User("u")) != (want == "") {
			t.Errorf("the member that was first seen as %+v is %q, %q", first, got, reason)
		}
	}
	u.Status.State = iamv1alpha1.Inactive
	if subject, reason := o.Subject(iamv1alpha1.Subject{Kind: "User", Name: "u", UID: "1"}); subject != "" || reason != "" {
		t.Errorf("who is inactive is %q, %q", subject, reason)
	}
}
