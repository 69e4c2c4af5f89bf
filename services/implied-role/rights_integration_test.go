//go:build integration

package impliedrole_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"connectrpc.com/connect"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/internal/guard"
	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

// large is the name of what is in no namespace.
const large = "entail-test-large"

// TestEachMissingRightIsToldAndWaitedFor takes the rights of the table from the service, one at a time: it says which one it
// lacks, and once it has that again, all is done that was to be done.
func TestEachMissingRightIsToldAndWaitedFor(whole *testing.T) {
	b := &without{bed: newBed(whole)}
	b.webhooks = b.Kube.Webhooks(whole, guard.Name)
	b.Reflector()
	whole.Cleanup(func() { _ = b.webhooks.Delete(context.WithoutCancel(whole.Context())) })
	b.start(func(c *admission.Config) { c.Service = "default/nowhere" })
	for _, right := range testbed.Rights(topology.ImpliedRole) {
		if keeps(right) {
			whole.Run(right.String(), func(t *testing.T) { b.lacks(t, right) })
		}
	}
	b.running.Stop()
	if err := b.webhooks.Delete(whole.Context()); err != nil {
		whole.Fatal(err)
	}
	b.start(byURL) // Where it is found, it judges.
	b.everyKind()
	for _, right := range testbed.Rights(topology.ImpliedRole) {
		if !keeps(right) {
			whole.Run(right.String(), func(t *testing.T) { b.lacks(t, right) })
		}
	}
}

// byURL has the API server find the webhooks.
func byURL(c *admission.Config) { c.URL = "https://" + c.Listener.Addr().String() }

// keeps is whether the right is on what the service keeps of its webhooks.
func keeps(right testbed.Right) bool {
	return right.Resource == "validatingwebhookconfigurations" || right.Resource == "secrets"
}

// without is a service that lacks one right after the other.
type without struct {
	*bed
	running  *testbed.Running
	log      testbed.Log
	webhooks testbed.Webhooks
	n        int
}

func (b *without) start(find func(*admission.Config)) {
	b.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.T.Fatal(err)
	}
	b.running = b.serveWith(func(c *impliedrole.Config) {
		c.Policy.Prohibited = append(c.Policy.Prohibited, "never-*")
		c.RPC.Auth, c.WithoutGuard, c.Admission.Listener = rpc.Kubernetes, false, listener
		find(&c.Admission)
		c.Embed.Log = b.log.Logger(b.T, slog.LevelInfo)
	})
}

// lacks takes one right.
func (b *without) lacks(t *testing.T, right testbed.Right) {
	t.Helper()
	whole := b.T
	b.T = t
	defer func() { b.T = whole }()
	b.n++
	w := &want{bed: b.bed, right: right, name: fmt.Sprintf("part%d", b.n), user: "before", child: "b", url: b.running.URL, webhooks: b.webhooks}
	w.registered()
	w.prepare()
	w.Settled()
	said := len(b.log.Bytes())
	give := b.Kube.Revoke(t, topology.ImpliedRole, right)
	if right.Resource == "namespaces" { // It is read once.
		b.running.Stop()
		b.T = whole
		b.start(byURL)
		b.T = t
	}
	done := w.ask()
	testbed.Eventually(t, soon, func() error { return b.log.Warns(said, w.denial()) })
	give()
	done()
	b.CaughtUp(topology.ImpliedRole)
}

// everyKind makes an object of each kind that is followed, and what follows from them.
func (b *bed) everyKind() {
	b.T.Helper()
	b.roles("a", "b", "lead")
	b.role("secret-admin", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	cluster := metav1.ObjectMeta{Name: large}
	typed := b.typed.RbacV1()
	if _, err := typed.ClusterRoles().Create(b.T.Context(), &rbacv1.ClusterRole{ObjectMeta: cluster}, metav1.CreateOptions{}); err != nil {
		b.T.Fatal(err)
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}
	bound := &rbacv1.ClusterRoleBinding{ObjectMeta: cluster, RoleRef: ref}
	if _, err := typed.ClusterRoleBindings().Create(b.T.Context(), bound, metav1.CreateOptions{}); err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() {
		ctx := context.WithoutCancel(b.T.Context())
		_ = typed.ClusterRoleBindings().Delete(ctx, cluster.Name, metav1.DeleteOptions{})
		_ = typed.ClusterRoles().Delete(ctx, cluster.Name, metav1.DeleteOptions{})
	})
	b.role(mallory,
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"bind"}, ResourceNames: []string{"lead"}},
	)
	b.do("a>b lead>secret-admin B=a{u} " + mallory + "=" + mallory + "{" + mallory + "}")
	b.becomes("B:b{u}")
}

// want is something that the service needs a right for.
type want struct {
	*bed
	right     testbed.Right
	name, url string
	webhooks  testbed.Webhooks
	// user is whom the source binds, child the role that follows.
	user, child string
}

// denial is what the service says without the right, among other words. Of bind the API server tells what would be given.
func (w *want) denial() string {
	if w.right.Verb == "bind" {
		return "attempting to grant RBAC permissions not currently held"
	}
	return w.right.Denial()
}

// registered waits until the service has its webhooks; where they are found by URL, it keeps no key of theirs.
func (w *want) registered() {
	w.T.Helper()
	there := w.webhooks.Configured
	if keeps(w.right) {
		there = w.webhooks.Kept
	}
	testbed.Eventually(w.T, soon, func() error { return there(w.T.Context()) })
}

// source is a binding from which one more follows, by a rule of its own.
func (w *want) source() string {
	return w.name + ">" + w.child + " B" + w.name + "=" + w.name + "{" + w.user + "}"
}

// prepare makes what is there while the service has all rights.
func (w *want) prepare() {
	w.T.Helper()
	if w.right.Resource == "rolebindings" && (w.right.Verb == "delete" || w.right.Verb == "patch") {
		w.roles(w.name)
		w.do(w.source())
		w.follows(true)
	}
	if w.looks() {
		for i := range 51 { // More roles than are read one by one.
			w.do(fmt.Sprintf("M%[1]d=m%[1]d{%[2]s}", i, mallory))
		}
		w.tried("implies")
	}
}

// looks is whether the right is for looking at what somebody holds.
func (w *want) looks() bool {
	return w.right.Verb == "list" && (w.right.Resource == "roles" || w.right.Resource == "clusterroles" || w.right.Resource == "clusterrolebindings")
}

// follows waits until there is a binding that follows from the source of this name, or none.
func (w *want) follows(want bool) {
	w.T.Helper()
	testbed.Eventually(w.T, soon, func() error {
		for _, b := range w.allBindings() {
			if b.Name == name("B"+w.name, w.child) && len(b.Subjects) == 1 && b.Subjects[0].Name == w.user {
				if !want {
					return fmt.Errorf("%s is there", b.Name)
				}
				return nil
			}
		}
		if want {
			return errors.New("nothing follows")
		}
		return nil
	})
}

// ask has the service need the right. The function waits until it has done what it needed it for.
func (w *want) ask() (done func()) {
	w.T.Helper()
	kind, read := kinds.Of(w.right.GroupResource)
	switch on := w.right.Resource; {
	case on == "tokenreviews" || on == "subjectaccessreviews":
		return w.call()
	case keeps(w.right):
		w.unregister()
		return w.registered
	case w.right.Resource == "namespaces": // The identity of the cluster is read with the first object that is too large.
		w.large(kinds.RoleBindings(), mallory)
		return func() {}
	case read && w.right.Verb == "get":
		w.large(kind, map[kinds.Kind]string{
			kinds.ImpliedRoles(): ruleName("a>b"), kinds.RoleBindings(): "B", kinds.Roles(): "a",
			kinds.ClusterRoles(): large, kinds.ClusterRoleBindings(): large,
		}[kind])
		return func() {}
	case on == "events":
		w.do(w.name + ">never-" + w.name)
		return func() {}
	case w.looks():
		w.tried("this cannot be judged now")
		return func() { w.tried("implies") }
	case w.right.Verb == "list":
		return w.drifts()
	case w.right.Verb == "bind":
		return w.gives()
	case on == "rolebindings" && w.right.Verb == "patch":
		w.user = "after"
		w.do("B" + w.name + "=" + w.name + "{" + w.user + "}")
		return func() { w.follows(true) }
	case w.right.Verb == "delete":
		w.do("-B" + w.name)
		return func() { w.follows(false) }
	}
	w.roles(w.name)
	w.do(w.source())
	return func() { w.follows(true) }
}

// gives has a role follow that permits what the service itself may not.
func (w *want) gives() (done func()) {
	w.T.Helper()
	rule := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}
	w.roles(w.name)
	given := "given-" + w.name
	w.child = given
	if w.right.Resource == "roles" {
		w.role(given, rule)
	} else {
		roles := w.typed.RbacV1().ClusterRoles()
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: given}, Rules: []rbacv1.PolicyRule{rule}}
		if _, err := roles.Create(w.T.Context(), role, metav1.CreateOptions{}); err != nil {
			w.T.Fatal(err)
		}
		w.T.Cleanup(func() { _ = roles.Delete(context.WithoutCancel(w.T.Context()), given, metav1.DeleteOptions{}) })
		w.child = "ClusterRole/" + given
	}
	w.do(w.source())
	return func() { w.follows(true) }
}

// tried is what becomes of a binding by mallory to a role that she may bind, and which implies one that she may not.
func (w *want) tried(words string) {
	w.T.Helper()
	testbed.Eventually(w.T, soon, func() error {
		_, err := w.hands(mallory).typed.RbacV1().RoleBindings(w.namespace).Create(w.T.Context(), binding("probe", "lead", mallory), metav1.CreateOptions{DryRun: dry()})
		if !strings.Contains(fmt.Sprint(err), words) {
			return fmt.Errorf("the answer is %v, want %s", err, words)
		}
		return nil
	})
}

// call asks a question, as somebody of whom the service knows nothing yet.
func (w *want) call() (done func()) {
	w.T.Helper()
	_, caller := w.Kube.Caller(w.T, w.name)
	client := inferencev1connect.NewInferenceServiceClient(caller, w.url)
	ask := func(ctx context.Context) error {
		_, err := client.ListInferences(ctx, &inferencev1.ListInferencesRequest{Namespace: w.namespace})
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
func (w *want) large(kind kinds.Kind, name string) {
	w.T.Helper()
	namespace := w.namespace
	if kind == kinds.ClusterRoles() || kind == kinds.ClusterRoleBindings() {
		namespace = ""
	}
	w.Oversize(kind, namespace, name)
}

// drifts has an administrator ask what is otherwise than it must be.
func (w *want) drifts() (done func()) {
	w.T.Helper()
	_, caller := w.Kube.Caller(w.T, w.name)
	bindings := w.typed.RbacV1().ClusterRoleBindings()
	administrator := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: w.name}},
	}
	if _, err := bindings.Create(w.T.Context(), administrator, metav1.CreateOptions{}); err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = bindings.Delete(context.WithoutCancel(w.T.Context()), w.name, metav1.DeleteOptions{}) })
	client := inferencev1connect.NewInferenceServiceClient(caller, w.url)
	ask := func() error {
		_, err := client.CheckDrift(w.T.Context(), &inferencev1.CheckDriftRequest{Namespace: w.namespace})
		return err
	}
	testbed.Eventually(w.T, soon, func() error { // The API server may have to learn of the right first.
		if err := ask(); connect.CodeOf(err) != connect.CodeUnavailable {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	return func() { testbed.Eventually(w.T, soon, ask) }
}
