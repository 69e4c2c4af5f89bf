package plan

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
)

func named(name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}
}

// lookupFixture has a user, a group, two roles and a widget; gizmos are in namespaces, and nobody follows ghosts.
func lookupFixture() *iam.DeclaredObjects {
	var registered []*iamv1alpha1.ProtectedResource
	for _, kind := range []string{"Widget", "Gizmo", "Ghost"} {
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: kind}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a.example", kind, strings.ToLower(kind)+"s", []string{"get"}
		registered = append(registered, p)
	}
	roles := map[string]*iamv1alpha1.Role{"viewer": {ObjectMeta: named("viewer", "1")}}
	roles["viewer"].Spec.IncludedPermissions = []string{"a.example/widgets.get"}
	return &iam.DeclaredObjects{
		Registry: iam.NewRegistry(registered),
		Role:     func(_, name string) *iamv1alpha1.Role { return roles[name] },
		Group: func(_, name string) *iamv1alpha1.Group {
			return map[string]*iamv1alpha1.Group{"staff": {ObjectMeta: named("staff", "2")}}[name]
		},
		User: func(name string) *iamv1alpha1.User {
			return map[string]*iamv1alpha1.User{
				"alice": {ObjectMeta: named("alice", "3")},
				"idle":  {ObjectMeta: named("idle", "5"), Status: iamv1alpha1.UserStatus{State: iamv1alpha1.Inactive}},
			}[name]
		},
		Target: func(object string) (iam.BindingTarget, bool) {
			return iam.BindingTarget{UID: "4"}, object == "a.example/Widget:w"
		},
		Scope: func(typ string) (namespaced, followed bool) {
			return typ == "a.example/Gizmo", typ != "a.example/Ghost"
		},
	}
}

// texts are conditions as type=status/reason.
func texts(conditions []condition.Condition) map[string]string {
	all := map[string]string{}
	for _, c := range conditions {
		all[c.Type] = string(c.Status) + "/" + c.Reason
	}
	return all
}

func want(t *testing.T, got []condition.Condition, want map[string]string) {
	t.Helper()
	is := texts(got)
	for typ, text := range want {
		if is[typ] != text {
			t.Errorf("%s is %s, want %s", typ, is[typ], text)
		}
	}
}

func TestPolicyBindingConditionsUsePublishedReasons(t *testing.T) {
	alice := iamv1alpha1.Subject{Kind: "User", Name: "alice", UID: "3"}
	w := &iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Widget", Name: "w", UID: "4"}
	for name, test := range map[string]struct {
		edit func(*iamv1alpha1.PolicyBindingSpec)
		want map[string]string
	}{
		"nothing": {func(*iamv1alpha1.PolicyBindingSpec) {}, map[string]string{
			"TargetValid": "True/ValidationSuccessful", "SubjectValid": "True/ValidationSuccessful",
			"RoleValid": "True/ValidationSuccessful", "Ready": "True/ReconciliationSuccessful",
		}},
		"the kind is not registered": {func(s *iamv1alpha1.PolicyBindingSpec) { s.ResourceSelector.ResourceRef.Kind = "Gadget" }, map[string]string{
			"TargetValid": "False/ValidationFailed", "Ready": "False/ResourceSelectorValidationFailed",
		}},
		"the target is not there": {func(s *iamv1alpha1.PolicyBindingSpec) { s.ResourceSelector.ResourceRef.Name = "x" }, map[string]string{
			"TargetValid": "False/TargetNotFound", "Ready": "False/ResourceSelectorValidationFailed",
		}},
		"the target is in no namespace": {func(s *iamv1alpha1.PolicyBindingSpec) { s.ResourceSelector.ResourceRef.Kind = "Gizmo" }, map[string]string{
			"TargetValid": "False/TargetNamespaceMissing", "Ready": "False/ResourceSelectorValidationFailed",
		}},
		"nobody follows such targets": {func(s *iamv1alpha1.PolicyBindingSpec) { s.ResourceSelector.ResourceRef.Kind = "Ghost" }, map[string]string{
			"TargetValid": "False/TargetKindNotRecognized", "Ready": "False/ResourceSelectorValidationFailed",
		}},
		"the target is another": {func(s *iamv1alpha1.PolicyBindingSpec) { s.ResourceSelector.ResourceRef.UID = "5" }, map[string]string{
			"TargetValid": "False/TargetUIDMismatch", "Ready": "False/ResourceSelectorValidationFailed",
		}},
		"a subject is another": {func(s *iamv1alpha1.PolicyBindingSpec) { s.Subjects[0].UID = "6" }, map[string]string{
			"SubjectValid": "False/ValidationFailed", "Ready": "False/SubjectValidationFailed",
		}},
		"the role is not there": {func(s *iamv1alpha1.PolicyBindingSpec) { s.RoleRef.Name = "nobody" }, map[string]string{
			"RoleValid": "False/RoleNotFoundForBinding", "Ready": "False/RoleNotFoundForBinding",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &iamv1alpha1.PolicyBinding{ObjectMeta: named("b", "b")}
			ref := *w
			b.Spec = iamv1alpha1.PolicyBindingSpec{
				RoleRef: iamv1alpha1.RoleReference{Name: "viewer"}, Subjects: []iamv1alpha1.Subject{alice},
				ResourceSelector: iamv1alpha1.ResourceSelector{ResourceRef: &ref},
			}
			test.edit(&b.Spec)
			want(t, PolicyBindingConditions(lookupFixture(), b), test.want)
		})
	}
}

func TestPolicyBindingMessageNamesObjectAndRemedy(t *testing.T) {
	ref := iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Widget", Name: "w", UID: "4"}
	for name, test := range map[string]struct {
		edit func(*iamv1alpha1.PolicyBindingSpec)
		want []string
	}{
		"another uid": {
			func(s *iamv1alpha1.PolicyBindingSpec) { s.Subjects[0].UID = "6" },
			[]string{"User/alice (UIDMismatch)", "kubectl get KIND NAME -o jsonpath={.metadata.uid}"},
		},
		"no such user": {
			func(s *iamv1alpha1.PolicyBindingSpec) { s.Subjects[0].Name = "alicia" },
			[]string{"User/alicia (NotFound)", "create the objects that are NotFound, or correct their names"},
		},
		"a group without a namespace": {
			func(s *iamv1alpha1.PolicyBindingSpec) {
				s.Subjects[0] = iamv1alpha1.Subject{Kind: "Group", Name: "staff", UID: "3"}
			},
			[]string{"Group/staff (NamespaceMissing)", "set the namespace of the Group"},
		},
		"no such kind": {
			func(s *iamv1alpha1.PolicyBindingSpec) { s.ResourceSelector.ResourceRef.Kind = "Gadget" },
			[]string{`kind Gadget of API group "a.example"`, "entail iam kinds"},
		},
		"no such object": {
			func(s *iamv1alpha1.PolicyBindingSpec) { s.ResourceSelector.ResourceRef.Name = "x" },
			[]string{`Widget "x" with this uid not found; for an object that is created later, make another binding`},
		},
		"no such role": {
			func(s *iamv1alpha1.PolicyBindingSpec) { s.RoleRef.Name = "editr" },
			[]string{`Role "editr" not found in namespace "ns"; create it`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, target := &iamv1alpha1.PolicyBinding{ObjectMeta: named("b", "b")}, ref
			b.Spec = iamv1alpha1.PolicyBindingSpec{
				RoleRef: iamv1alpha1.RoleReference{Name: "viewer"}, Subjects: []iamv1alpha1.Subject{{Kind: "User", Name: "alice", UID: "3"}},
				ResourceSelector: iamv1alpha1.ResourceSelector{ResourceRef: &target},
			}
			test.edit(&b.Spec)
			conditions := PolicyBindingConditions(lookupFixture(), b)
			ready := conditions[len(conditions)-1]
			for _, text := range test.want {
				if !strings.Contains(ready.Message, text) {
					t.Errorf("got %q, want %q in it", ready.Message, text)
				}
			}
		})
	}
}

func TestPolicyBindingConditionsReportInactiveSubject(t *testing.T) {
	alice, idle := iamv1alpha1.Subject{Kind: "User", Name: "alice", UID: "3"}, iamv1alpha1.Subject{Kind: "User", Name: "idle", UID: "5"}
	b := &iamv1alpha1.PolicyBinding{ObjectMeta: named("b", "b")}
	b.Spec.RoleRef.Name = "viewer"
	b.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "a.example", Kind: "Widget"}
	for message, subjects := range map[string][]iamv1alpha1.Subject{
		"the subjects have the role on the target":                                             {alice},
		"the subjects have the role on the target, but for those that are Inactive: User/idle": {alice, idle},
		"all subjects are Inactive, so nobody has the role by this binding":                    {idle},
	} {
		b.Spec.Subjects = subjects
		conditions := PolicyBindingConditions(lookupFixture(), b)
		want(t, conditions, map[string]string{"SubjectValid": "True/ValidationSuccessful", "Ready": "True/ReconciliationSuccessful"})
		if ready := conditions[len(conditions)-1]; ready.Message != message {
			t.Errorf("of %v it says %q, want %q", subjects, ready.Message, message)
		}
	}
}

func TestPolicyBindingConditionsOfTrustedTarget(t *testing.T) {
	b := &iamv1alpha1.PolicyBinding{ObjectMeta: named("b", "b")}
	b.Spec.RoleRef.Name, b.Spec.Subjects = "viewer", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:all"}}
	b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Widget", Name: "unknown", UID: "9"}
	o := lookupFixture()
	want(t, PolicyBindingConditions(o, b), map[string]string{"Ready": "False/ResourceSelectorValidationFailed"})
	o.Trusted = func(typ string) bool { return typ == "a.example/Widget" }
	want(t, PolicyBindingConditions(o, b), map[string]string{"Ready": "True/ReconciliationSuccessful"})
	want(t, []condition.Condition{ObservedCondition(true, false, "")}, map[string]string{"Observed": "True/Followed"})
	want(t, []condition.Condition{ObservedCondition(false, true, "")}, map[string]string{"Observed": "False/Trusted"})
	want(t, []condition.Condition{ObservedCondition(false, false, "no right")}, map[string]string{"Observed": "False/NotFollowed"})
}

func TestRoleConditionsListEffectiveAndUnknownPermissions(t *testing.T) {
	r := &iamv1alpha1.Role{ObjectMeta: named("r", "r")}
	r.Spec.IncludedPermissions = []string{"b.example/nothings.get", "odd"}
	r.Spec.InheritedRoles = []iamv1alpha1.ScopedRoleReference{{Name: "viewer"}}
	effective, conditions := RoleConditions(lookupFixture(), r)
	if len(effective) != 3 {
		t.Errorf("it gives %v", effective)
	}
	want(t, conditions, map[string]string{"PermissionsValid": "False/InvalidPermissions", "Ready": "False/InvalidPermissions"})
	if m := conditions[0].Message; m != "Role contains invalid/undefined permissions: b.example/nothings.get, odd (invalid format)" {
		t.Errorf("it says %q", m)
	}
	r.Spec.IncludedPermissions, r.Spec.InheritedRoles = nil, append(r.Spec.InheritedRoles, iamv1alpha1.ScopedRoleReference{Name: "gone"})
	_, conditions = RoleConditions(lookupFixture(), r)
	want(t, conditions, map[string]string{"PermissionsValid": "True/ValidationSuccessful", "Ready": "False/EffectivePermissionsError"})
	if m := conditions[1].Message; m != "inherited role 'gone' not found in namespace 'ns'" {
		t.Errorf("it says %q", m)
	}
}

func TestGroupMembershipConditionsReportMissing(t *testing.T) {
	m := &iamv1alpha1.GroupMembership{ObjectMeta: named("m", "m")}
	m.Spec.UserRef.Name, m.Spec.GroupRef.Name, m.Spec.GroupRef.Namespace = "alice", "staff", "ns"
	want(t, GroupMembershipConditions(lookupFixture(), m), map[string]string{"UserRefValid": "False/ValidationFailed", "Ready": "False/ReferenceInvalid"})
	m.Status.User = &iamv1alpha1.Member{Name: "alice", UID: "3"}
	want(t, GroupMembershipConditions(lookupFixture(), m), map[string]string{
		"UserRefValid": "True/ValidationSuccessful", "GroupRefValid": "True/ValidationSuccessful", "Ready": "True/Reconciled",
	})
	idle := lookupFixture()
	alice := idle.User("alice").DeepCopy()
	alice.Status.State = iamv1alpha1.Inactive
	idle.User = func(string) *iamv1alpha1.User { return alice }
	if says := GroupMembershipConditions(idle, m)[2]; !says.IsTrue() || !strings.Contains(says.Message, "Inactive") {
		t.Errorf("of who is Inactive it says %+v", says)
	}
	m.Status.User = &iamv1alpha1.Member{Name: "alice", UID: "before"}
	want(t, GroupMembershipConditions(lookupFixture(), m), map[string]string{"UserRefValid": "False/ValidationFailed", "Ready": "False/ReferenceInvalid"})
	m.Spec.UserRef.Name, m.Spec.GroupRef.Name = "alice", "nobody"
	m.Status.User = nil
	want(t, GroupMembershipConditions(lookupFixture(), m), map[string]string{"GroupRefValid": "False/ValidationFailed", "Ready": "False/ReferenceInvalid"})
}

func TestRoleConditionsBoundPermissions(t *testing.T) {
	r, p, o := &iamv1alpha1.Role{ObjectMeta: named("r", "r")}, &iamv1alpha1.ProtectedResource{}, lookupFixture()
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural = "a.example", "Gadget", "gadgets"
	for i := range 30_000 {
		verb := fmt.Sprintf("v%099d", i)
		p.Spec.Permissions = append(p.Spec.Permissions, verb)
		r.Spec.IncludedPermissions = append(r.Spec.IncludedPermissions, "a.example/gadgets."+verb)
	}
	o.Registry = iam.NewRegistry([]*iamv1alpha1.ProtectedResource{p})
	effective, conditions := RoleConditions(o, r)
	if len(effective) == 0 || len(effective)*100 > maxEffective {
		t.Errorf("it lists %d permissions", len(effective))
	}
	if ready := conditions[1]; !strings.HasSuffix(ready.Message, fmt.Sprintf("of 30000 permissions only the first %d are listed", len(effective))) {
		t.Errorf("it says %.100q", ready.Message)
	}
}

func TestProjectCondition(t *testing.T) {
	o := lookupFixture()
	o.Target = func(object string) (iam.BindingTarget, bool) {
		return iam.BindingTarget{UID: "7"}, object == "resourcemanager.miloapis.com/Organization:acme"
	}
	recorded := func(name, uid string) *resourcemanagerv1alpha1.ProjectOrganization {
		return &resourcemanagerv1alpha1.ProjectOrganization{Name: name, UID: uid}
	}
	owner := func(uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "resourcemanager.miloapis.com/v1alpha1", Kind: "Organization", Name: "acme", UID: types.UID(uid)}
	}
	for name, test := range map[string]struct {
		organization string
		record       *resourcemanagerv1alpha1.ProjectOrganization
		owners       []metav1.OwnerReference
		want         string
	}{
		"it does":                    {"acme", recorded("acme", "7"), nil, "True/Reconciled"},
		"nothing is recorded":        {"acme", nil, nil, "False/ReferenceInvalid"},
		"another is recorded":        {"acme", recorded("other", "7"), nil, "False/ReferenceInvalid"},
		"one before is recorded":     {"acme", recorded("acme", "6"), nil, "False/ReferenceInvalid"},
		"there is none":              {"other", recorded("other", "7"), nil, "False/ReferenceInvalid"},
		"an owner reference agrees":  {"acme", recorded("acme", "7"), []metav1.OwnerReference{owner("7")}, "True/Reconciled"},
		"an owner reference differs": {"acme", recorded("acme", "7"), []metav1.OwnerReference{owner("6")}, "False/ReferenceInvalid"},
	} {
		p := &resourcemanagerv1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "8", OwnerReferences: test.owners}}
		p.Spec.OwnerRef.Name, p.Status.Organization = test.organization, test.record
		if got := texts([]condition.Condition{ProjectCondition(o, p)}); got["Ready"] != test.want {
			t.Errorf("%s: %s, want %s", name, got["Ready"], test.want)
		}
	}
}
