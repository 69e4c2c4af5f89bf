//go:build integration

package tuplesync_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

// guarded has the service ask the API server who calls it, and note what it logs.
func guarded(t *testing.T, log *testbed.Log) func(*tuplesync.Config) {
	t.Helper()
	return func(c *tuplesync.Config) {
		c.RPC.Auth = rpc.Kubernetes
		c.Embed.Log = log.Logger(t, slog.LevelInfo)
	}
}

// TestEachMissingRightIsToldAndWaitedFor takes the rights of the table from the service, one at a time: it says which one it
// lacks, and once it has that again, all is done that was to be done.
func TestEachMissingRightIsToldAndWaitedFor(whole *testing.T) {
	var log testbed.Log
	b := &peopled{iamBed: newIAMBed(whole)}
	b.everyKind()
	b.Reflector()
	b.running = b.serve(guarded(whole, &log))
	b.fill()
	for i, right := range testbed.Rights(topology.TupleSync) {
		if right.Verb == "list" {
			continue // Without one of these, objects are read one by one: see below.
		}
		whole.Run(right.String(), func(t *testing.T) {
			b.T = t
			defer func() { b.T = whole }()
			w := &want{peopled: b, right: right, name: fmt.Sprintf("part%d", i)}
			b.CaughtUp(topology.TupleSync)
			b.Settled()
			said := len(log.Bytes())
			give := b.Kube.Revoke(t, topology.TupleSync, right)
			if right.Resource == "namespaces" { // It is read once.
				b.running.Stop()
				b.T = whole
				b.running = b.serve(guarded(whole, &log))
				b.T = t
			}
			done := w.ask()
			testbed.Eventually(t, soon, func() error { return log.Warns(said, w.denial()) })
			give()
			done()
			b.CaughtUp(topology.TupleSync)
		})
	}
}

// everyKind makes what a bed of IAM lacks of the kinds that are followed.
func (b *peopled) everyKind() {
	b.T.Helper()
	b.store("demo", "document:1#viewer@user:1")
	b.synced("demo", docs)
	b.module("docs", "demo", "document:2#viewer@user:1")
	b.merged("docs")
	b.apply(kinds.IAMServiceAccounts(), "robot", nil)
	kind := kinds.AccountInfos()
	b.serveKind(kind)
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.Served().GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": "account"}}}
	testbed.Eventually(b.T, soon, func() error { // A kind that was just defined is not served at once.
		_, err := b.Resource(kind).Apply(b.T.Context(), "account", account, metav1.ApplyOptions{FieldManager: "test"})
		return err
	})
}

// serveKind has the API server serve one of kcp's kinds, until the test ends.
func (b *peopled) serveKind(kind kinds.Kind) {
	b.T.Helper()
	name := kind.Resource + "." + kind.Group
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kinds.Definitions().Served().GroupVersion().String(), "kind": kinds.Definitions().Kind, "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Cluster",
			"names": map[string]any{"plural": kind.Resource, "kind": kind.Kind, "singular": strings.ToLower(kind.Kind), "listKind": kind.Kind + "List"},
			"versions": []any{map[string]any{"name": kind.Version, "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}
	api := b.Resource(kinds.Definitions())
	if _, err := api.Apply(b.T.Context(), name, definition, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		b.T.Fatal(err)
	}
}

// want is something that the service needs a right for.
type want struct {
	*peopled
	right testbed.Right
	name  string
}

// denial is what the service says without the right, among other words. Of some verbs admission asks.
func (w *want) denial() string {
	if w.right.Verb == "record" {
		return "the verb record on"
	}
	return w.right.Denial()
}

// ask has the service need the right. The function waits until it has done what it needed it for.
func (w *want) ask() (done func()) {
	w.T.Helper()
	resource, _, onStatus := strings.Cut(w.right.Resource, "/")
	kind, _ := kinds.Of(event.GroupResource{Group: w.right.Group, Resource: resource})
	switch {
	case resource == "tokenreviews" || resource == "subjectaccessreviews":
		return w.call()
	case resource == "namespaces": // It names the owner of the store of IAM, which is looked for at the start.
		return func() {}
	case resource == "events": // People are told of a tuple that nobody declares.
		declared := w.holds(w.id)
		w.write(w.id, []string{iam.GrantType + ":" + string(w.web.UID) + "/door#u@" + iam.User("eve")}, nil)
		return func() { w.awaitTuples(w.id, declared...) }
	case w.right.Verb == "get":
		w.large(kind)
		return func() {}
	case kind == stores:
		w.store(w.name, "document:1#viewer@user:1")
		w.synced(w.name, docs)
		return func() { w.await(stores, w.name, "Synced") }
	case kind == models:
		w.module(w.name, "demo", "document:"+w.name+"#viewer@user:1")
		w.merged(w.name)
		return func() { w.await(models, w.name, "Synced") }
	case w.right.Verb == "patch" && !onStatus:
		return w.held(kind)
	}
	w.another(kind)
	return func() { w.judged(kind) }
}

// call asks a question, as somebody of whom the service knows nothing yet.
func (w *want) call() (done func()) {
	w.T.Helper()
	_, caller := w.Kube.Caller(w.T, w.name)
	client := tuplev1connect.NewTupleServiceClient(caller, w.running.URL)
	ask := func(ctx context.Context) error {
		_, err := client.ListTuples(ctx, &tuplev1.ListTuplesRequest{Store: "demo"})
		return err
	}
	testbed.Answers(w.T, soon, connect.CodeInternal, ask)
	return func() { testbed.Answers(w.T, soon, connect.CodePermissionDenied, ask) }
}

// large has the bus say of an object that it is too large for it.
func (w *want) large(kind kinds.Kind) {
	w.T.Helper()
	name := map[kinds.Kind]string{
		stores: "demo", models: "docs", kinds.AccountInfos(): "account", kinds.ProtectedResources(): "project", kinds.IAMRoles(): "viewer",
		kinds.PolicyBindings(): "bob", kinds.Groups(): "staff", kinds.GroupMemberships(): "alice-staff", kinds.Users(): "alice",
		kinds.IAMServiceAccounts(): "robot", kinds.Organizations(): "acme", kinds.Projects(): "web",
	}[kind]
	namespace := w.namespaceOf(kind)
	if kind == stores || kind == models || kind == kinds.AccountInfos() {
		namespace = ""
	}
	w.Oversize(kind, namespace, name)
}

// held has software that is gone hold an object.
func (w *want) held(kind kinds.Kind) (done func()) {
	w.T.Helper()
	w.another(kind)
	w.judged(kind)
	patch := fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, map[kinds.Kind]string{
		kinds.IAMRoles(): iamv1alpha1.RoleFinalizer, kinds.PolicyBindings(): iamv1alpha1.PolicyBindingFinalizer,
		kinds.GroupMemberships(): iamv1alpha1.GroupMembershipFinalizer, kinds.Users(): iamv1alpha1.SystemGroupFinalizer,
		kinds.IAMServiceAccounts(): iamv1alpha1.SystemGroupFinalizer, kinds.Projects(): resourcemanagerv1alpha1.HierarchyFinalizer,
	}[kind])
	api := w.Resource(kind).Namespace(w.namespaceOf(kind))
	if _, err := api.Patch(w.T.Context(), w.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.T.Fatal(err)
	}
	return func() {
		testbed.Eventually(w.T, soon, func() error {
			u, err := api.Get(w.T.Context(), w.name, metav1.GetOptions{})
			if err == nil && len(u.GetFinalizers()) > 0 {
				err = errors.New("it is held")
			}
			return err
		})
	}
}

// another makes one more object of a kind of IAM.
func (w *want) another(kind kinds.Kind) {
	w.T.Helper()
	switch kind {
	case kinds.IAMRoles():
		w.role(w.name, nil, getProject)
	case kinds.PolicyBindings():
		w.bind(w.name, "viewer", on(projectType, w.web), user(w.alice))
	case kinds.GroupMemberships():
		w.join(w.name, "bob", w.staff)
	case kinds.Users():
		w.user(w.name)
	case kinds.Organizations():
		w.org(w.name)
	case kinds.Projects():
		w.project(w.name, "acme")
	case kinds.ProtectedResources():
		w.peopled.register(w.name, "a.example/P"+w.name[1:], w.name+"s")
		w.remodel()
	default:
		w.apply(kind, w.name, nil)
	}
}

// judged waits until the object that [want.another] made says what became of it.
func (w *want) judged(kind kinds.Kind) {
	w.T.Helper()
	testbed.Eventually(w.T, soon, func() error {
		u, err := w.Resource(kind).Namespace(w.namespaceOf(kind)).Get(w.T.Context(), w.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var o struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
			return err
		}
		if len(o.Status.Conditions) == 0 {
			return fmt.Errorf("%s %s says nothing: %v", kind.Kind, w.name, u.Object)
		}
		return nil
	})
}

// TestWithoutTheRightToListObjectsAreReadOneByOne takes the rights to list from the service, where there is much to confirm: it
// says which it lacks, and everything is given all the same.
func TestWithoutTheRightToListObjectsAreReadOneByOne(t *testing.T) {
	const many, registered = 60, "iam.miloapis.com/ProtectedResource" // More than are read one by one anyway.
	var log testbed.Log
	b := newIAMBed(t)
	b.register("registered", registered, "protectedresources")
	atOnce(many, func(i int) {
		name := fmt.Sprint("part", i)
		kind := b.apply(kinds.ProtectedResources(), name, iamv1alpha1.ProtectedResourceSpec{
			ServiceRef: iamv1alpha1.ServiceReference{Name: "a.example"}, Kind: fmt.Sprint("P", i), Plural: fmt.Sprintf("p%ds", i), Singular: fmt.Sprint("p", i),
			Permissions: []string{"get"},
		})
		org, who := b.org(name), b.user(name)
		b.project(name, name)
		robot := b.apply(kinds.IAMServiceAccounts(), name, nil)
		team := b.apply(kinds.Groups(), name, nil)
		b.join(name, name, team)
		b.role(name, nil, getProject, "iam.miloapis.com/protectedresources.get")
		b.bind(name, name, on(orgType, org), user(who), iamv1alpha1.Subject{Kind: iamv1alpha1.ServiceAccountKind, Name: name, UID: string(robot.UID)})
		b.bind(name+"-kind", name, on(registered, kind), group(team))
	})
	b.remodel()
	b.Reflector()
	var lists []testbed.Right
	for _, right := range testbed.Rights(topology.TupleSync) {
		if right.Verb == "list" {
			lists = append(lists, right)
			b.Kube.Revoke(t, topology.TupleSync, right)
		}
	}
	b.serve(guarded(t, &log))
	for _, right := range lists {
		testbed.Eventually(t, soon, func() error { return log.Warns(0, right.Denial()) })
	}
	for i := range many {
		b.ready(kinds.PolicyBindings(), fmt.Sprint("part", i), bound)
	}
}
