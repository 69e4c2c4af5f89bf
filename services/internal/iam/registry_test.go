package iam

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// For these two plurals, the permissions to get have the same relation.
const collidingPlural, collidedPlural = "p4ca21b606f2a", "qac3cc6c88f9f"

func TestRelationsAreTwelveHexDigitsOfSHA256(t *testing.T) {
	for permission, want := range map[string]string{
		"resourcemanager.miloapis.com/organizations.get": "072940629e11",
		"core.miloapis.com/secrets.delete":               "30a413cbaaf1",
		"a.example/" + collidingPlural + ".get":          "0b22236f125e",
		"a.example/" + collidedPlural + ".get":           "0b22236f125e",
	} {
		if got := RelationOf(permission); got != want {
			t.Errorf("%s is %s, want %s", permission, got, want)
		}
	}
}

// resource returns a ProtectedResource of a kind and plural. A larger age means a later creation.
func resource(age int, kind, plural string, parents ...string) *iamv1alpha1.ProtectedResource {
	group, name, _ := strings.Cut(kind, "/")
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{
		Name: strings.ToLower(name) + "-" + plural, Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(int64(age), 0)),
	}}
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = group, name, plural, []string{"get"}
	for _, parent := range parents {
		g, k, _ := strings.Cut(parent, "/")
		p.Spec.ParentResources = append(p.Spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: g, Kind: k})
	}
	return p
}

// withRegistrationCondition adds the conditions for a reason. Unless the resource was refused, it also adds the
// matching registration. Parents are recorded only if there is no problem.
func withRegistrationCondition(p *iamv1alpha1.ProtectedResource, reason string) *iamv1alpha1.ProtectedResource {
	status := metav1.ConditionFalse
	if reason == iamv1alpha1.IAMSystemConfigured {
		status = metav1.ConditionTrue
	}
	p.Status.Conditions = []metav1.Condition{{Type: iamv1alpha1.Ready, Status: status, Reason: reason, ObservedGeneration: p.Generation}}
	registered := metav1.Condition{Type: iamv1alpha1.Registered, Status: metav1.ConditionTrue, Reason: iamv1alpha1.InForce, ObservedGeneration: p.Generation}
	if reason == iamv1alpha1.AlreadyRegistered || reason == iamv1alpha1.LimitExceeded {
		registered.Status, registered.Reason = metav1.ConditionFalse, reason
	} else {
		permissions, _ := specPermissions(&p.Spec)
		p.Status.Registered = &iamv1alpha1.Registration{
			Group: APIGroupName(p.Spec.ServiceRef.Name), Kind: p.Spec.Kind, Plural: p.Spec.Plural, Permissions: permissions, Generation: p.Generation,
		}
	}
	if reason == iamv1alpha1.IAMSystemConfigured {
		for _, ref := range p.Spec.ParentResources {
			p.Status.Registered.Parents = append(p.Status.Registered.Parents, OpenFGAType(ref.APIGroup, ref.Kind))
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, registered)
	return p
}

// withNextGeneration simulates an edit after the registration.
func withNextGeneration(p *iamv1alpha1.ProtectedResource) *iamv1alpha1.ProtectedResource {
	p.Generation++
	return p
}

// withOutageCondition sets the condition Ready as it is while OpenFGA does not answer.
func withOutageCondition(p *iamv1alpha1.ProtectedResource) *iamv1alpha1.ProtectedResource {
	p.Status.Conditions[0] = metav1.Condition{Type: iamv1alpha1.Ready, Status: metav1.ConditionUnknown, ObservedGeneration: p.Generation}
	return p
}

func deleted(p *iamv1alpha1.ProtectedResource) *iamv1alpha1.ProtectedResource {
	p.DeletionTimestamp = new(metav1.Now())
	return p
}

func permitting(p *iamv1alpha1.ProtectedResource, permissions ...string) *iamv1alpha1.ProtectedResource {
	p.Spec.Permissions = permissions
	return p
}

func TestRegistryRefusesBadResourceAlone(t *testing.T) {
	const fine = iamv1alpha1.IAMSystemConfigured
	tests := map[string]struct {
		resources []*iamv1alpha1.ProtectedResource
		// want lists the reasons in the order of resources. kinds lists the registered kinds with their parents.
		want  []string
		kinds string
	}{
		"parents": {
			[]*iamv1alpha1.ProtectedResource{resource(1, "a.example/Leaf", "leaves", "a.example/Tree", "/Namespace"), resource(2, "a.example/Tree", "trees"), resource(3, "core.miloapis.com/Namespace", "namespaces")},
			[]string{fine, fine, fine},
			"Leaf<Tree<Namespace Tree Namespace",
		},
		"one of two with one kind": {
			[]*iamv1alpha1.ProtectedResource{resource(2, "a.example/Tree", "trees"), resource(1, "a.example/Tree", "woods")},
			[]string{iamv1alpha1.AlreadyRegistered, fine},
			"Tree",
		},
		"one of two with one plural": {
			[]*iamv1alpha1.ProtectedResource{resource(1, "a.example/Tree", "trees"), resource(2, "a.example/Wood", "trees")},
			[]string{fine, iamv1alpha1.AlreadyRegistered},
			"Tree",
		},
		"who is in force stays so": {
			[]*iamv1alpha1.ProtectedResource{resource(1, "a.example/Wood", "trees"), withRegistrationCondition(resource(2, "a.example/Tree", "trees"), fine)},
			[]string{iamv1alpha1.AlreadyRegistered, fine},
			"Tree",
		},
		"who lacks a parent is in force, too": {
			[]*iamv1alpha1.ProtectedResource{
				resource(1, "a.example/Wood", "trees"), withRegistrationCondition(resource(2, "a.example/Tree", "trees", "a.example/None"), iamv1alpha1.ParentNotRegistered),
			},
			[]string{iamv1alpha1.AlreadyRegistered, iamv1alpha1.ParentNotRegistered},
			"Tree",
		},
		"who has changed since stays in force": {
			[]*iamv1alpha1.ProtectedResource{
				withRegistrationCondition(resource(1, "a.example/Wood", "trees"), iamv1alpha1.AlreadyRegistered), withNextGeneration(withRegistrationCondition(resource(2, "a.example/Tree", "trees"), fine)),
			},
			[]string{iamv1alpha1.AlreadyRegistered, fine},
			"Tree",
		},
		"who is in force stays so while nothing answers": {
			[]*iamv1alpha1.ProtectedResource{
				withRegistrationCondition(resource(1, "a.example/Wood", "trees"), iamv1alpha1.AlreadyRegistered),
				withOutageCondition(withNextGeneration(withRegistrationCondition(resource(2, "a.example/Tree", "trees"), fine))),
			},
			[]string{iamv1alpha1.AlreadyRegistered, fine},
			"Tree",
		},
		"who has a permission that is none is in force, too": {
			[]*iamv1alpha1.ProtectedResource{
				resource(1, "a.example/Wood", "trees"), withRegistrationCondition(permitting(resource(2, "a.example/Tree", "trees"), "get", "N O"), iamv1alpha1.InvalidName),
			},
			[]string{iamv1alpha1.AlreadyRegistered, iamv1alpha1.InvalidName},
			"Tree",
		},
		"of a cycle the edge that was refused, whatever becomes of the other": {
			[]*iamv1alpha1.ProtectedResource{
				withNextGeneration(withRegistrationCondition(resource(2, "a.example/A", "as", "a.example/B"), fine)),
				withRegistrationCondition(resource(1, "a.example/B", "bs", "a.example/A"), iamv1alpha1.ParentCycle),
			},
			[]string{fine, iamv1alpha1.ParentCycle},
			"A<B B",
		},
		"who is in force as he is comes before who has changed": {
			[]*iamv1alpha1.ProtectedResource{withNextGeneration(withRegistrationCondition(resource(1, "a.example/Wood", "trees"), fine)), withRegistrationCondition(resource(2, "a.example/Tree", "trees"), fine)},
			[]string{iamv1alpha1.AlreadyRegistered, fine},
			"Tree",
		},
		"who goes makes room": {
			[]*iamv1alpha1.ProtectedResource{deleted(withRegistrationCondition(resource(1, "a.example/Tree", "trees"), fine)), resource(2, "a.example/Wood", "trees")},
			[]string{"", fine},
			"Wood",
		},
		"an unknown parent beside a known one": {
			[]*iamv1alpha1.ProtectedResource{resource(1, "a.example/Leaf", "leaves", "a.example/None", "a.example/Tree"), resource(2, "a.example/Tree", "trees")},
			[]string{iamv1alpha1.ParentNotRegistered, fine},
			"Leaf<Tree Tree",
		},
		"of a cycle the newest edge": {
			[]*iamv1alpha1.ProtectedResource{
				resource(1, "a.example/A", "as", "a.example/B"), resource(2, "a.example/B", "bs", "a.example/C"), resource(3, "a.example/C", "cs", "a.example/A", "a.example/D"),
				resource(4, "a.example/D", "ds"),
			},
			[]string{fine, fine, iamv1alpha1.ParentCycle, fine},
			"A<B B<C C<D D",
		},
		"of a cycle the edge that was added": {
			[]*iamv1alpha1.ProtectedResource{resource(1, "a.example/A", "as", "a.example/B"), withRegistrationCondition(resource(2, "a.example/B", "bs", "a.example/A"), fine)},
			[]string{iamv1alpha1.ParentCycle, fine},
			"A B<A",
		},
		"of a cycle that was judged the same": {
			[]*iamv1alpha1.ProtectedResource{withRegistrationCondition(resource(1, "a.example/A", "as", "a.example/B"), iamv1alpha1.ParentCycle), withRegistrationCondition(resource(2, "a.example/B", "bs", "a.example/A"), fine)},
			[]string{iamv1alpha1.ParentCycle, fine},
			"A B<A",
		},
		"a parent of itself": {
			[]*iamv1alpha1.ProtectedResource{resource(1, "a.example/A", "as", "a.example/A")}, []string{iamv1alpha1.ParentCycle}, "A",
		},
		"a collision": {
			[]*iamv1alpha1.ProtectedResource{permitting(resource(2, "a.example/A", collidedPlural), "get", "list"), resource(1, "a.example/B", collidingPlural)},
			[]string{iamv1alpha1.PermissionCollision, fine},
			"A B",
		},
		"a group that cannot be one":      {[]*iamv1alpha1.ProtectedResource{resource(1, "a_b/A", "as")}, []string{iamv1alpha1.InvalidName}, ""},
		"a kind that cannot be one":       {[]*iamv1alpha1.ProtectedResource{resource(1, "a/A:b", "as")}, []string{iamv1alpha1.InvalidName}, ""},
		"a plural that cannot be one":     {[]*iamv1alpha1.ProtectedResource{resource(1, "a/A", "a.s")}, []string{iamv1alpha1.InvalidName}, ""},
		"a permission that cannot be one": {[]*iamv1alpha1.ProtectedResource{permitting(resource(1, "a/A", "as"), "get", "*")}, []string{iamv1alpha1.InvalidName}, "A"},
		"a name too long":                 {[]*iamv1alpha1.ProtectedResource{resource(1, "a/A"+strings.Repeat("a", maxType), "as")}, []string{iamv1alpha1.InvalidName}, ""},
		"a type of the model's own":       {[]*iamv1alpha1.ProtectedResource{resource(1, RootType, "roots")}, []string{iamv1alpha1.InvalidName}, ""},
		"a kind of IAM called otherwise":  {[]*iamv1alpha1.ProtectedResource{resource(1, "iam.miloapis.com/Roll", "roles")}, []string{iamv1alpha1.InvalidName}, ""},
		"two kinds of IAM, mixed up": {
			[]*iamv1alpha1.ProtectedResource{
				resource(1, "resourcemanager.miloapis.com/Project", "organizations"), resource(2, "resourcemanager.miloapis.com/Organization", "projects"),
			},
			[]string{iamv1alpha1.InvalidName, iamv1alpha1.InvalidName},
			"",
		},
		"another kind of IAM": {[]*iamv1alpha1.ProtectedResource{resource(1, "iam.miloapis.com/Role", "roles")}, []string{fine}, "Role"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry(test.resources)
			for i, p := range test.resources {
				if got := r.FindingFor(p.Name); got.Reason != test.want[i] || (got.Message == "") != (got.Reason == "") {
					t.Errorf("%s: %+v, want %s", p.Name, got, test.want[i])
				}
			}
			var kinds []string
			for _, p := range test.resources {
				if k, ok := r.Kind(OpenFGAType(p.Spec.ServiceRef.Name, p.Spec.Kind)); ok && k.Resource == p {
					kinds = append(kinds, p.Spec.Kind)
					for _, parent := range k.Parents {
						kinds[len(kinds)-1] += "<" + parent.Resource.Spec.Kind
					}
				}
			}
			if got := strings.Join(kinds, " "); got != test.kinds {
				t.Errorf("registered are %q, want %q", got, test.kinds)
			}
		})
	}
}

func TestRegistryRefusesCollidingPermissions(t *testing.T) {
	r := NewRegistry([]*iamv1alpha1.ProtectedResource{resource(1, "a.example/B", collidingPlural), permitting(resource(2, "a.example/A", collidedPlural), "get", "list")})
	if _, known := r.RelationOf("a.example/" + collidedPlural + ".get"); known {
		t.Error("a permission has the relation of another")
	}
	for _, permission := range []string{"a.example/" + collidingPlural + ".get", "a.example/" + collidedPlural + ".list"} {
		if _, known := r.RelationOf(permission); !known {
			t.Errorf("%s is lost", permission)
		}
	}
	if _, _, ok := r.ResolveRequest("a.example", collidedPlural, "", "get"); ok {
		t.Error("a request has the relation of another")
	}
}

func TestSubresourcesHaveOwnPermissions(t *testing.T) {
	p := permitting(resource(1, "a.example/Tree", "trees"), "get", "update", "scale.update")
	p.Spec.Subresources = []iamv1alpha1.SubresourceDefinition{{Name: "status", Permissions: []string{"patch"}}}
	for mode, want := range map[iamv1alpha1.SubresourceMode]map[string]string{
		"": {
			"/get": "a.example/trees.get", "/delete": "", "status/patch": "a.example/trees/status.patch", "status/update": "",
			"scale/update": "a.example/trees/scale.update", "exec/get": "",
		},
		iamv1alpha1.SubresourcesInherit: {
			"/get": "a.example/trees.get", "status/patch": "a.example/trees/status.patch", "status/update": "", "scale/get": "",
			"exec/get": "a.example/trees.get", "exec/delete": "",
		},
	} {
		p.Spec.UnlistedSubresources = mode
		r := NewRegistry([]*iamv1alpha1.ProtectedResource{p})
		for request, permission := range want {
			sub, verb, _ := strings.Cut(request, "/")
			if _, got, ok := r.ResolveRequest("a.example", "trees", sub, verb); ok != (permission != "") || ok && got != permission {
				t.Errorf("%q: %s needs %s (%v), want %s", mode, request, got, ok, permission)
			}
		}
	}
	if _, _, ok := NewRegistry(nil).ResolveRequest("a.example", "trees", "", "get"); ok {
		t.Error("an unregistered resource has a permission")
	}
}

func TestAPIGroupNameOfCoreGroup(t *testing.T) {
	r := NewRegistry([]*iamv1alpha1.ProtectedResource{resource(1, "core.miloapis.com/Secret", "secrets")})
	if k, permission, ok := r.ResolveRequest("", "secrets", "", "get"); !ok || permission != "core.miloapis.com/secrets.get" || k.Type != OpenFGAType("", "Secret") {
		t.Errorf("%v needs %s (%v)", k, permission, ok)
	}
}

func TestGrantablePermissionsIncludeDescendants(t *testing.T) {
	r := NewRegistry([]*iamv1alpha1.ProtectedResource{
		resource(1, "a/Top", "tops"), resource(2, "a/Left", "lefts", "a/Top"), resource(3, "a/Right", "rights", "a/Top"), resource(4, "a/Leaf", "leaves", "a/Left", "a/Right"),
	})
	for typ, want := range map[string]string{
		"a/Top": "a/leaves.get a/lefts.get a/rights.get a/tops.get", "a/Left": "a/leaves.get a/lefts.get", "a/Leaf": "a/leaves.get",
	} {
		if k, _ := r.Kind(typ); strings.Join(k.GrantablePermissions(), " ") != want {
			t.Errorf("%s has %v, want %s", typ, k.GrantablePermissions(), want)
		}
	}
}

func TestRegistryWithinBudgetDropsWeakestClaim(t *testing.T) {
	const fine = iamv1alpha1.IAMSystemConfigured
	resources := []*iamv1alpha1.ProtectedResource{
		resource(1, "a/A", "as"), withRegistrationCondition(resource(2, "a/B", "bs"), fine), resource(3, "a/C", "cs"), withRegistrationCondition(resource(4, "a/D", "ds"), fine),
	}
	all := EncodedSize(NewRegistry(resources).TypeDefinitions())
	tests := map[string]struct {
		room ModelBudget
		want string
	}{
		"room":                      {ModelBudget{10, all}, "a/A a/B a/C a/D"},
		"a type too few":            {ModelBudget{9, all}, "a/A a/B a/D"},
		"a byte too few":            {ModelBudget{10, all - 1}, "a/A a/B a/D"},
		"those in force alone":      {ModelBudget{8, all}, "a/B a/D"},
		"not even for all of these": {ModelBudget{7, all}, "a/B"},
		"none":                      {ModelBudget{}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := RegistryWithinBudget(resources, test.room)
			var got []string
			for _, k := range r.Kinds() {
				got = append(got, k.Type)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got kinds %v, want %s", got, test.want)
			}
			for _, p := range resources {
				_, in := r.Kind("a/" + p.Spec.Kind)
				if reason := r.FindingFor(p.Name).Reason; reason != map[bool]string{true: fine, false: iamv1alpha1.LimitExceeded}[in] {
					t.Errorf("%s: got reason %s", p.Name, reason)
				}
			}
		})
	}
}

// Only the third of five resources is too large. It must stay out, whether all resources are new or all were edited
// after their registration.
func TestRegistryWithinBudgetSkipsTooLargeResource(t *testing.T) {
	const fine = iamv1alpha1.IAMSystemConfigured
	for _, rank := range []int{editedRank, unregisteredRank} {
		resources := []*iamv1alpha1.ProtectedResource{
			resource(1, "a/A", "as"), resource(2, "a/B", "bs"), resource(3, "a/C", "cs"), resource(4, "a/D", "ds"), resource(5, "a/E", "es"),
		}
		room := ModelBudget{100, EncodedSize(NewRegistry(resources).TypeDefinitions())}
		resources[2] = permitting(resources[2], "get", "list", "watch", "create", "update", "patch", "delete")
		if rank == editedRank {
			for _, p := range resources {
				withRegistrationCondition(p, fine).Generation++
			}
		}
		r := RegistryWithinBudget(resources, room)
		for i, p := range resources {
			want := map[bool]string{true: iamv1alpha1.LimitExceeded, false: fine}[i == 2]
			if _, in := r.Kind("a/" + p.Spec.Kind); in == (i == 2) || r.FindingFor(p.Name).Reason != want {
				t.Errorf("rank %d, %s: got registered %v, reason %s", rank, p.Name, in, r.FindingFor(p.Name).Reason)
			}
		}
	}
}

func TestRecordedAndUnchangedRegistry(t *testing.T) {
	old := withRegistrationCondition(resource(1, "a/Old", "olds"), iamv1alpha1.IAMSystemConfigured)
	old.Generation++
	resources := []*iamv1alpha1.ProtectedResource{
		old, resource(2, "a/New", "news"), withRegistrationCondition(resource(3, "a/In", "ins"), iamv1alpha1.IAMSystemConfigured),
		withRegistrationCondition(resource(4, "a/Orphan", "orphans", "a/None"), iamv1alpha1.ParentNotRegistered), withRegistrationCondition(resource(5, "a/Out", "outs"), iamv1alpha1.AlreadyRegistered),
	}
	for registry, want := range map[*Registry]string{RecordedRegistry(resources): "a/In a/Old a/Orphan", UnchangedRegistry(resources): "a/In a/Orphan"} {
		var got []string
		for _, k := range registry.Kinds() {
			got = append(got, k.Type)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("in force are %v, want %s", got, want)
		}
	}
}
