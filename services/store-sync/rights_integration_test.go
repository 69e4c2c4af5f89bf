//go:build integration

package storesync_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	storesync "github.com/entail-dev/entail/services/store-sync"
	"github.com/entail-dev/entail/services/store-sync/internal/guard"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// TestEachMissingRightIsToldAndWaitedFor takes the rights of the table from the service, one at a time: it says which one it
// lacks, and once it has that again, all is done that was to be done.
func TestEachMissingRightIsToldAndWaitedFor(whole *testing.T) {
	var log testbed.Log
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		whole.Fatal(err)
	}
	b := newBed(whole)
	b.kcp()
	b.Reflector()
	start := func() *testbed.Running {
		return b.serve(ordinary(), unprivileged, func(c *storesync.Config) {
			c.RPC.Auth, c.Admission.Listener, c.Admission.Service = rpc.Kubernetes, listener, "default/nowhere"
			c.Embed.Log = log.Logger(whole, slog.LevelInfo)
		})
	}
	webhooks := b.Kube.Webhooks(whole, guard.Name)
	whole.Cleanup(func() { _ = webhooks.Delete(context.WithoutCancel(whole.Context())) })
	running := start()
	b.everyKind()
	for i, right := range testbed.Rights(topology.StoreSync) {
		whole.Run(right.String(), func(t *testing.T) {
			b.T = t
			defer func() { b.T = whole }()
			w := &want{bed: b, right: right, name: fmt.Sprintf("part%d", i), url: running.URL, webhooks: webhooks}
			w.registered()
			w.prepare()
			w.Settled()
			said := len(log.Bytes())
			give := b.Kube.Revoke(t, topology.StoreSync, right)
			if right.Resource == "namespaces" { // It is read once.
				running.Stop()
				b.T = whole
				if listener, err = net.Listen("tcp", listener.Addr().String()); err != nil {
					t.Fatal(err)
				}
				running = start()
				b.T = t
			}
			done := w.ask()
			testbed.Eventually(t, soon, func() error { return log.Warns(said, w.denial()) })
			give()
			done()
			b.CaughtUp(topology.StoreSync)
		})
	}
	for _, held := range b.List(kinds.Bindings()).Items { // Or the API server waits for them to be let go.
		b.Delete(kinds.Bindings(), held.GetName())
		b.awaitUnbound(held.GetName())
	}
}

// everyKind makes an object of each kind that is followed.
func (b *bed) everyKind() {
	b.T.Helper()
	b.applyStore("demo", withAccounts)
	b.applyModule("docs", "demo", dsl("docs"))
	b.account("demo")
	b.export("widgets.example.com", widgets("example.com", ""))
	b.bind("widgets", "widgets.example.com")
	b.define(widgets("a.example", "demo"))
	b.applyStore("plain")
	b.register("tenant", "plain", tenantPart)
	b.protect("widget", "a.example/Widget", "widgets")
	b.await("demo", "ModelSynced=True/Merged")
	b.awaitModule("docs", "Merged=True/Merged")
	b.awaitDocument("tenant", "Merged=True/Merged")
	b.awaitProtected("widget", configured)
	b.awaitHeld("widgets", true)
}

// want is something that the service needs a right for.
type want struct {
	*bed
	right     testbed.Right
	name, url string
	webhooks  testbed.Webhooks
}

// denial is what the service says without the right, among other words. Of some verbs admission asks.
func (w *want) denial() string {
	switch w.right.Verb {
	case "adopt", "extend", "record":
		return "the verb " + w.right.Verb + " on"
	}
	return w.right.Denial()
}

// registered waits until the service has its webhooks.
func (w *want) registered() {
	w.T.Helper()
	testbed.Eventually(w.T, soon, func() error { return w.webhooks.Kept(w.T.Context()) })
}

// prepare makes what is there while the service has all rights.
func (w *want) prepare() {
	w.T.Helper()
	if w.right.Resource != corev1alpha1.AuthorizationModels {
		return
	}
	switch w.right.Verb {
	case "delete":
		w.define(w.definition())
		w.awaitTypes(w.generated())
	case "list":
		w.applyStore(w.name)
		for i := range plan.MaxModules {
			w.applyModule(fmt.Sprint(w.name, "-", i), w.name, dsl(fmt.Sprint("m", i)))
		}
		testbed.Eventually(w.T, soon, func() error {
			if n := len(w.store(w.name).Status.Modules); n < plan.MaxModules {
				return fmt.Errorf("%d modules are listed", n)
			}
			return nil
		})
	}
}

// definition is one of which a module is made.
func (w *want) definition() definition {
	return definition{w.name + ".example", "parts", "Part", "v1", "demo"}
}

// generated is its type in the model.
func (w *want) generated() string { return w.name + "_example_part" }

// ask has the service need the right. The function waits until it has done what it needed it for.
func (w *want) ask() (done func()) {
	w.T.Helper()
	kind, read := kinds.Of(w.right.GroupResource)
	switch on := w.right.Resource; {
	case on == "tokenreviews" || on == "subjectaccessreviews":
		return w.call()
	case on == "validatingwebhookconfigurations" || on == "secrets":
		w.unregister()
		return w.registered
	case read && w.right.Verb == "get":
		w.large(kind)
		return func() {}
	case on == "namespaces" || on == corev1alpha1.Stores && (w.right.Verb == "create" || w.right.Verb == "adopt"):
		w.unmake("iam")
		return func() { w.await("iam", "ModelSynced=True/Merged") }
	case strings.HasPrefix(on, "protectedresources"):
		return w.protected()
	case strings.HasPrefix(on, "policydocuments"):
		w.register(w.name, "plain", projectPart)
		return func() { w.awaitDocument(w.name, "Merged=True/Merged") }
	case on == kinds.Bindings().Resource:
		w.bind(w.name, "widgets.example.com")
		return func() { w.awaitHeld(w.name, true) }
	case strings.HasPrefix(on, corev1alpha1.AuthorizationModels) || w.right.Verb == "extend":
		return w.module()
	}
	w.applyStore(w.name)
	return func() { w.await(w.name, "ModelSynced=True/Merged") }
}

// call asks a question, as somebody of whom the service knows nothing yet.
func (w *want) call() (done func()) {
	w.T.Helper()
	_, caller := w.Kube.Caller(w.T, w.name)
	client := storev1connect.NewStoreServiceClient(caller, w.url)
	ask := func(ctx context.Context) error {
		_, err := client.GetStore(ctx, &storev1.GetStoreRequest{Name: "demo"})
		return err
	}
	testbed.Answers(w.T, soon, connect.CodeInternal, ask)
	return func() { testbed.Answers(w.T, soon, connect.CodePermissionDenied, ask) }
}

// unregister takes from the service what it keeps of its webhooks.
func (w *want) unregister() {
	w.T.Helper()
	take := w.webhooks.Delete
	if w.right.Verb == "update" {
		take = w.webhooks.Empty
	}
	if err := take(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

// large has the bus say of an object that it is too large for it.
func (w *want) large(kind kinds.Kind) {
	w.T.Helper()
	name, namespace := map[kinds.Kind]string{
		kinds.Stores(): "demo", kinds.AuthorizationModels(): "docs", kinds.AccountInfos(): "account", kinds.PolicyDocuments(): "tenant",
		kinds.ProtectedResources(): "widget", kinds.Definitions(): "widgets.a.example", kinds.Bindings(): "widgets",
		kinds.Exports(): "widgets.example.com", kinds.ResourceSchemas(): "v1.widgets.example.com",
	}[kind], ""
	if kind == kinds.PolicyDocuments() {
		namespace = "default"
	}
	w.Oversize(kind, namespace, name)
}

// unmake takes a Store away by force, with what OpenFGA has of it.
func (w *want) unmake(name string) {
	w.T.Helper()
	id := w.store(name).Status.StoreID
	w.Delete(kinds.Stores(), name)
	stripped := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := w.Resource(kinds.Stores()).Patch(w.T.Context(), name, types.MergePatchType, stripped, metav1.PatchOptions{}); err != nil {
		w.T.Fatal(err)
	}
	if err := w.hand.DeleteStore(w.T.Context(), id); err != nil {
		w.T.Fatal(err)
	}
}

// protected has the service look at a ProtectedResource.
func (w *want) protected() (done func()) {
	w.T.Helper()
	if w.right.Resource == "protectedresources" && w.right.Verb == "patch" {
		held := fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, iamv1alpha1.ProtectedResourceFinalizer)
		api := w.Resource(kinds.ProtectedResources())
		if _, err := api.Patch(w.T.Context(), "widget", types.MergePatchType, held, metav1.PatchOptions{}); err != nil {
			w.T.Fatal(err)
		}
		return func() {
			testbed.Eventually(w.T, soon, func() error {
				u, err := api.Get(w.T.Context(), "widget", metav1.GetOptions{})
				if err == nil && len(u.GetFinalizers()) > 0 {
					err = errors.New("it is held")
				}
				return err
			})
		}
	}
	w.protect(w.name, "a.example/"+strings.ReplaceAll(w.name, "p", "P"), w.name+"s")
	return func() { w.awaitProtected(w.name, configured) }
}

// module has the service make, judge or take away an AuthorizationModel.
func (w *want) module() (done func()) {
	w.T.Helper()
	switch {
	case w.right.Resource != corev1alpha1.AuthorizationModels && w.right.Verb == "patch":
		w.applyModule(w.name, "demo", dsl(w.name))
		return func() { w.awaitModule(w.name, "Merged=True/Merged") }
	case w.right.Verb == "list": // It is needed where a status has no room for more.
		w.applyStore(w.name, func(s *corev1alpha1.StoreSpec) { s.CoreModule = strings.Replace(coreV1, "owner", "holder", 1) })
		return func() {}
	case w.right.Verb == "delete":
		d := w.definition()
		d.store = ""
		w.define(d)
		return func() { w.awaitTypes("-" + w.generated()) }
	}
	w.define(w.definition())
	return func() { w.awaitTypes(w.generated()) }
}
