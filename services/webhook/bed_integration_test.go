//go:build integration

package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/webhook"
)

func TestMain(m *testing.M) {
	if testenv.PrepareIfSpawned() {
		cfg := webhook.Defaults()
		service.Main(topology.Webhook, cfg.BindFlags, func(ctx context.Context) error { return webhook.Run(ctx, cfg) })
	}
	testenv.Main(m)
}

const (
	soon      = 60 * time.Second
	namespace = metav1.NamespaceDefault
	projects  = "resourcemanager.miloapis.com"
)

// bed is the test environment of a webhook, with its clients.
type bed struct {
	*testenv.Env

	// set changes the settings of the service.
	set     func(*webhook.Config)
	running *testenv.RunningService
	client  accessv1connect.AccessServiceClient
	// malloryRole is the ClusterRole of mallory. See newGuardedBed.
	malloryRole string
	// made lists the objects that the service must have received.
	made []*accessv1.AtLeast
}

func newBed(t *testing.T) *bed {
	t.Helper()
	return newBedWith(t, func(*webhook.Config) {})
}

func newBedWith(t testing.TB, set func(*webhook.Config)) *bed {
	t.Helper()
	b := &bed{Env: testenv.NewEnv(t), set: set}
	b.serve()
	return b
}

// serve starts a webhook. It ends at the latest with the test.
func (b *bed) serve() {
	b.T.Helper()
	cfg := webhook.Defaults()
	listener := b.ConfigureService(topology.Webhook, &cfg.Config)
	b.set(&cfg)
	b.running = b.Serve(listener, func(ctx context.Context) error { return webhook.Run(ctx, cfg) })
	b.client = accessv1connect.NewAccessServiceClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, b.running.URL)
}

// create makes an object with a spec and returns its UID. The object is in the namespace if its kind has namespaces.
func (b *bed) create(kind kinds.Kind, name string, spec any) (uid string) {
	b.T.Helper()
	u := b.object(kind, name, spec)
	made, err := b.ResourceClient(kind).Namespace(u.GetNamespace()).Create(b.T.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		b.T.Fatalf("%s %s: %v", kind.Kind, name, err)
	}
	b.T.Cleanup(func() {
		err := b.ResourceClient(kind).Namespace(u.GetNamespace()).Delete(context.WithoutCancel(b.T.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			b.T.Error(err)
		}
	})
	b.made = append(b.made, after(kind, name))
	if kind == kinds.Projects() {
		b.own(name)
	}
	return string(made.GetUID())
}

func (b *bed) object(kind kinds.Kind, name string, spec any) *unstructured.Unstructured {
	b.T.Helper()
	encoded, err := json.Marshal(map[string]any{
		"apiVersion": kind.GroupVersionResource().GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": name}, "spec": spec,
	})
	u := &unstructured.Unstructured{}
	if err == nil {
		err = u.UnmarshalJSON(encoded)
	}
	if err != nil {
		b.T.Fatal(err)
	}
	if !kind.ClusterScoped {
		u.SetNamespace(namespace)
	}
	if spec == nil {
		delete(u.Object, "spec")
	}
	return u
}

// remove deletes an object of the namespace.
func (b *bed) remove(kind kinds.Kind, name string) {
	b.T.Helper()
	b.Delete(kind.InNamespace(namespace), name)
}

// protect registers the kinds Organization and Project, and makes a role that may get projects.
func (b *bed) protect() {
	b.T.Helper()
	for kind, parents := range map[string][]any{
		"Organization": nil, "Project": {map[string]any{"apiGroup": projects, "kind": "Organization"}},
	} {
		singular := map[string]string{"Organization": "organization", "Project": "project"}[kind]
		spec := map[string]any{
			"serviceRef": map[string]any{"name": projects}, "kind": kind, "singular": singular, "plural": singular + "s", "permissions": []any{"get", "list", "create"},
		}
		if parents != nil {
			spec["parentResources"] = parents
		}
		b.create(kinds.ProtectedResources(), singular, spec)
	}
	b.create(kinds.IAMRoles(), "viewer", map[string]any{"launchStage": "Beta", "includedPermissions": []any{projects + "/projects.get", projects + "/projects.list"}})
	b.create(kinds.IAMRoles(), "reader", map[string]any{"launchStage": "Beta", "inheritedRoles": []any{map[string]any{"name": "viewer"}}})
}

// bind gives subjects the role reader on an object.
func (b *bed) bind(name, kind, object, uid string, subjects ...any) {
	b.T.Helper()
	b.create(kinds.PolicyBindings(), name, map[string]any{
		"roleRef": map[string]any{"name": "reader"}, "subjects": subjects,
		"resourceSelector": map[string]any{"resourceRef": map[string]any{"apiGroup": projects, "kind": kind, "name": object, "uid": uid}},
	})
}

// record writes the user of a membership to its status, as tuple-sync does.
func (b *bed) record(membership, user, uid string) {
	b.T.Helper()
	b.say(kinds.GroupMemberships(), membership, "user", user, uid)
}

// own writes the owner of a project to its status, as tuple-sync does, if an organization of that name exists.
func (b *bed) own(project string) {
	b.T.Helper()
	p, err := b.ResourceClient(kinds.Projects()).Get(b.T.Context(), project, metav1.GetOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	name, _, _ := unstructured.NestedString(p.Object, "spec", "ownerRef", "name")
	for _, o := range b.List(kinds.Organizations()).Items {
		if o.GetName() == name {
			b.say(kinds.Projects(), project, "organization", name, string(o.GetUID()))
		}
	}
}

// say writes a reference to an object to a status field of another object.
func (b *bed) say(kind kinds.Kind, of, field, name, uid string) {
	b.T.Helper()
	patch := fmt.Sprintf(`{"status":{%q:{"name":%q,"uid":%q}}}`, field, name, uid)
	if !kind.ClusterScoped {
		kind = kind.InNamespace(namespace)
	}
	b.Patch(kind, of, patch, "status")
}

func subjectFromMessage(kind, name, uid string) map[string]any {
	return map[string]any{"kind": kind, "name": name, "uid": uid}
}

// after names an object that the answer must include.
func after(kind kinds.Kind, name string) *accessv1.AtLeast {
	ref := &eventv1.ObjectRef{Group: kind.Group, Resource: kind.Resource, Name: name}
	if !kind.ClusterScoped {
		ref.Namespace = namespace
	}
	return &accessv1.AtLeast{Object: ref}
}

// get returns the answer to whether a user may get a project.
func (b *bed) get(user, project string, least *accessv1.AtLeast) (*accessv1.CheckAccessResponse, error) {
	return b.client.CheckAccess(b.T.Context(), &accessv1.CheckAccessRequest{
		Subject: &accessv1.Subject{User: user}, Verb: "get", Resource: projectNamed(project), AtLeast: least,
	})
}

func projectNamed(name string) *accessv1.Resource {
	return &accessv1.Resource{ApiGroup: projects, Resource: "projects", Name: name}
}

// answered repeats a call until the service answers. On a slow machine its informer may be too old for a while.
func answered[Q, A any](b *bed, ask func(context.Context, Q) (A, error), question Q) A {
	b.T.Helper()
	var answer A
	testenv.Eventually(b.T, soon, func() (err error) {
		answer, err = ask(b.T.Context(), question)
		return err
	})
	return answer
}

// mayGet expects that the first answer about alice and the project web is as wanted.
func (b *bed) mayGet(want bool, least *accessv1.AtLeast) {
	b.T.Helper()
	var answer *accessv1.CheckAccessResponse
	testenv.Eventually(b.T, soon, func() (err error) {
		answer, err = b.get("alice", "web", least)
		return err
	})
	if answer.GetAllowed() != want {
		b.T.Fatalf("alice, project web: got %v, want allowed %v", answer, want)
	}
}

// awaitReady waits until the service answers with all created objects.
func (b *bed) awaitReady() {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		for _, least := range b.made {
			if _, err := b.get("nobody", "none", least); err != nil {
				return err
			}
		}
		_, err := b.get("nobody", "none", nil)
		return err
	})
}
