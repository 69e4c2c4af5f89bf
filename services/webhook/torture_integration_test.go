//go:build integration

package webhook_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam/world"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestWebhookAnswersAsDeclaredUnderRandomFaults(t *testing.T) {
	b := newBed(t)
	reflector := b.StartReflector()
	b.protect()
	b.running.Stop()
	allowed := 0
	torture := &testenv.DisruptionSuite{
		Env: b.Env, Reflector: reflector, Service: topology.Webhook,
		Serve:        func() *testenv.RunningService { b.serve(); return b.running },
		RandomChange: b.anything, CheckBackend: func() error { n, err := b.asDeclared(); allowed += n; return err },
		Rounds: 3, ChangesPerDisruption: 16, ChangeInterval: time.Millisecond, ConvergeTimeout: soon,
	}
	torture.Run()
	if allowed == 0 {
		t.Error("got no answer that allows something, want some")
	}
}

// anything makes one random change that a user could make.
func (b *bed) anything(r *rand.Rand) {
	b.T.Helper()
	some := func(prefix string) string { return fmt.Sprintf("%s-%d", prefix, r.IntN(3)) }
	switch r.IntN(12) {
	case 0, 1:
		b.apply(kinds.IAMUsers(), some("user"), map[string]any{"email": "someone@example.com"})
	case 2:
		b.apply(kinds.Organizations(), some("org"), map[string]any{"type": "Standard"})
	case 3:
		project := some("project")
		b.apply(kinds.Projects(), project, map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": some("org")}})
		if r.IntN(4) > 0 {
			b.own(project)
		}
	case 4:
		b.apply(kinds.IAMRoles(), some("role"), map[string]any{
			"launchStage": "Beta", "inheritedRoles": []any{map[string]any{"name": some("role")}},
			"includedPermissions": []any{projects + "/projects.get", projects + "/organizations.get", projects + "/projects.list"}[:r.IntN(4)],
		})
	case 5:
		b.apply(kinds.IAMGroups(), some("group"), nil)
	case 6:
		b.join(r, some("user"), some("group"))
	case 7, 8, 9:
		b.bindAny(r, some("role"))
	default:
		of := []kinds.Kind{kinds.IAMUsers(), kinds.Organizations(), kinds.Projects(), kinds.IAMRoles(), kinds.IAMGroups(), kinds.GroupMemberships(), kinds.PolicyBindings()}
		kind := of[r.IntN(len(of))]
		if all := b.List(kind).Items; len(all) > 0 {
			o := all[r.IntN(len(all))]
			if err := b.ResourceClient(kind).Namespace(o.GetNamespace()).Delete(b.T.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				b.T.Fatal(err)
			}
		}
	}
}

// apply applies an object as a user would. Changes of immutable fields, such as the organization of a project, are
// ignored.
func (b *bed) apply(kind kinds.Kind, name string, spec any) {
	b.T.Helper()
	u := b.object(kind, name, spec)
	_, err := b.ResourceClient(kind).Namespace(u.GetNamespace()).Apply(b.T.Context(), name, u, metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil && !apierrors.IsInvalid(err) {
		b.T.Fatal(err)
	}
}

// join makes a user a member of a group, usually for the current user of that name.
func (b *bed) join(r *rand.Rand, user, group string) {
	b.T.Helper()
	name := user + "-" + group
	b.apply(kinds.GroupMemberships(), name, map[string]any{
		"userRef": map[string]any{"name": user}, "groupRef": map[string]any{"name": group, "namespace": namespace},
	})
	for _, u := range b.List(kinds.IAMUsers()).Items {
		if u.GetName() == user && r.IntN(4) > 0 {
			b.record(name, user, string(u.GetUID()))
		}
	}
}

// bindAny gives a role to an existing subject, on an existing object or on all projects.
func (b *bed) bindAny(r *rand.Rand, role string) {
	b.T.Helper()
	pick := func(kind kinds.Kind) *unstructured.Unstructured {
		all := b.List(kind).Items
		if len(all) == 0 {
			return nil
		}
		return &all[r.IntN(len(all))]
	}
	who := subjectFromMessage("Group", "oidc:staff", "")
	if o := pick([]kinds.Kind{kinds.IAMUsers(), kinds.IAMGroups()}[r.IntN(2)]); o != nil {
		who = subjectFromMessage(o.GetKind(), o.GetName(), string(o.GetUID()))
		if o.GetNamespace() != "" {
			who["namespace"] = o.GetNamespace()
		}
	}
	on := map[string]any{"resourceKind": map[string]any{"apiGroup": projects, "kind": "Project"}}
	if o := pick([]kinds.Kind{kinds.Organizations(), kinds.Projects()}[r.IntN(2)]); o != nil && r.IntN(5) > 0 {
		on = map[string]any{"resourceRef": map[string]any{"apiGroup": projects, "kind": o.GetKind(), "name": o.GetName(), "uid": string(o.GetUID())}}
	}
	b.apply(kinds.PolicyBindings(), fmt.Sprintf("binding-%d", r.IntN(40)), map[string]any{
		"roleRef": map[string]any{"name": role}, "subjects": []any{who}, "resourceSelector": on,
	})
}

// asDeclared returns nil if all answers equal those of a naive evaluator of the objects at the API server. It counts
// the answers that allow access.
func (b *bed) asDeclared() (allowed int, err error) {
	b.T.Helper()
	naive := world.NewNaiveAuthorizer(b.declared())
	for user := range 3 {
		for project := range 3 {
			for _, verb := range []string{"get", "list"} {
				q := world.Request{
					User: fmt.Sprint("user-", user), Groups: []string{"oidc:staff"}[:user%2], Permission: projects + "/projects." + verb,
					Type: projects + "/Project", Name: fmt.Sprint("project-", project),
				}
				answer, err := b.client.CheckAccess(b.T.Context(), &accessv1.CheckAccessRequest{
					Subject: &accessv1.Subject{User: q.User, Groups: q.Groups}, Verb: verb, Resource: projectNamed(q.Name),
				})
				if err != nil {
					return allowed, err
				}
				if answer.GetAllowed() {
					allowed++
				}
				if want := naive.Allows(q); answer.GetAllowed() != want {
					return allowed, fmt.Errorf("%+v: got %v, want %v", q, answer, want)
				}
			}
		}
	}
	return allowed, nil
}

// declared returns all objects of the API server.
func (b *bed) declared() *world.World {
	b.T.Helper()
	w := &world.World{}
	if err := errors.Join(
		read(b, kinds.ProtectedResources(), &w.Resources), read(b, kinds.IAMRoles(), &w.Roles), read(b, kinds.PolicyBindings(), &w.Bindings),
		read(b, kinds.IAMUsers(), &w.Users), read(b, kinds.IAMGroups(), &w.Groups), read(b, kinds.GroupMemberships(), &w.Memberships),
	); err != nil {
		b.T.Fatal(err)
	}
	for _, kind := range []kinds.Kind{kinds.Organizations(), kinds.Projects()} {
		for _, u := range b.List(kind).Items {
			thing := &world.TargetObject{Type: projects + "/" + kind.Kind}
			thing.Name, thing.UID, thing.DeletionTimestamp = u.GetName(), u.GetUID(), u.GetDeletionTimestamp()
			thing.Organization, _, _ = unstructured.NestedString(u.Object, "spec", "ownerRef", "name")
			if first, there, _ := unstructured.NestedStringMap(u.Object, "status", "organization"); there {
				thing.Recorded = &resourcemanagerv1alpha1.ProjectOrganization{Name: first["name"], UID: first["uid"]}
			}
			w.Targets = append(w.Targets, thing)
		}
	}
	return w
}

func read[T any](b *bed, kind kinds.Kind, into *[]*T) error {
	for _, u := range b.List(kind).Items {
		o := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
			return err
		}
		*into = append(*into, o)
	}
	return nil
}
