//go:build integration

package watcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/leak"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

// These values occur only in Secrets: in their data, annotations and labels.
const (
	password  = "cobalt-Ferret-91-orbit"
	annotated = "umbra-Lantern-37-quartz"
	labelled  = "indigo-Walrus-64-ember"
)

// secretTestEnv holds the servers around a watcher that follows Secrets.
type secretTestEnv struct {
	*testEnv
	core kubernetes.Interface
	log  *concurrentLog
}

// concurrentLog is a log with several concurrent writers.
type concurrentLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (j *concurrentLog) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *concurrentLog) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func newSecretTestEnv(t *testing.T, allowed ...string) *secretTestEnv {
	t.Helper()
	b := &secretTestEnv{testEnv: newTestEnv(t), log: &concurrentLog{}}
	b.core = kubernetes.NewForConfigOrDie(b.kube.AdminConfig())
	for _, namespace := range allowed {
		b.allow(namespace)
	}
	return b
}

// follow runs a watcher that follows the Secrets of some namespaces.
func (b *secretTestEnv) follow(namespaces ...string) (stop func(), url string) {
	b.t.Helper()
	cfg := watcher.Defaults()
	cfg.SecretNamespaces, cfg.Kinds = namespaces, followed()
	for _, kind := range append(kinds.OpenSearchKinds(), kinds.LegacyOpenSearchKinds()...) {
		cfg.Kinds = append(cfg.Kinds, kind.GroupResource.String())
	}
	cfg.Embed.Log = slog.New(slog.NewTextHandler(b.log, nil))
	stop, url = b.runAs(cfg, b.kube.ServiceConfig(b.t, topology.Watcher))
	ready(b.t, url, "")
	return stop, url
}

// namespace creates a namespace for the time of the test.
func (b *secretTestEnv) namespace(name string) {
	b.t.Helper()
	if _, err := b.core.CoreV1().Namespaces().Create(b.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		b.t.Fatal(err)
	}
}

// allow grants the watcher the Secrets of a namespace, in the documented way.
func (b *secretTestEnv) allow(namespace string) {
	b.t.Helper()
	b.namespace(namespace)
	for _, account := range rbac.ServiceAccounts() {
		if account.Service != topology.Watcher {
			continue
		}
		_, err := b.core.RbacV1().RoleBindings(namespace).Create(b.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account.SecretsRoleName()},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account.SecretsRoleName()},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rbac.Namespace, Name: account.Service}},
		}, metav1.CreateOptions{})
		if err == nil {
			err = devserver.AwaitUserRight(b.t.Context(), b.kube.AdminConfig(), account.UserName(), namespace, account.Secrets[0])
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// secret creates a Secret as kubectl apply would, with its values also in the annotation of kubectl.
func (b *secretTestEnv) secret(namespace, name string) {
	b.t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"note": labelled},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"stringData":{"key":"` + password + `"}}`, "note": annotated},
		},
		StringData: map[string]string{"key": password},
	}
	if _, err := b.core.CoreV1().Secrets(namespace).Create(b.t.Context(), s, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = b.core.CoreV1().Secrets(namespace).Delete(context.WithoutCancel(b.t.Context()), name, metav1.DeleteOptions{})
	})
}

// change changes the value of a Secret of team-a, and returns the new version.
func (b *secretTestEnv) change(name, value string) (version string) {
	b.t.Helper()
	s, err := b.core.CoreV1().Secrets("team-a").Get(b.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		s.StringData = map[string]string{"key": password + value}
		s, err = b.core.CoreV1().Secrets("team-a").Update(b.t.Context(), s, metav1.UpdateOptions{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return s.ResourceVersion
}

func (b *secretTestEnv) deleteSecret(name string) {
	b.t.Helper()
	if err := b.core.CoreV1().Secrets("team-a").Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// put creates an object.
func (b *secretTestEnv) put(kind kinds.Kind, namespace, name string, spec map[string]any, annotations map[string]string) {
	b.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind.GroupVersionResource().GroupVersion().WithKind(kind.Kind))
	u.SetName(name)
	u.SetAnnotations(annotations)
	if _, err := b.kube.DynamicClient(b.t).Resource(kind.GroupVersionResource()).Namespace(namespace).Create(b.t.Context(), u, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// user declares a user whose password is in a Secret.
func (b *secretTestEnv) user(namespace, name, secret string) {
	b.t.Helper()
	b.put(kinds.OpenSearchUsers(), namespace, name, map[string]any{
		"opensearchCluster": map[string]any{"name": "search"}, "passwordFrom": map[string]any{"name": secret, "key": "key"},
	}, nil)
}

func (b *secretTestEnv) deleteUser(name string) {
	b.t.Helper()
	if err := b.kube.DynamicClient(b.t).Resource(kinds.OpenSearchUsers().GroupVersionResource()).Namespace("team-a").Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func secretKey(namespace, name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.Secrets().GroupResource, Namespace: namespace, Name: name}
}

// told waits until the stream holds a Secret in a version, or in any version if that is empty, and returns the message.
func (b *secretTestEnv) told(namespace, name, version string) publish.StoredMessage {
	b.t.Helper()
	var last publish.StoredMessage
	testenv.Eventually(b.t, within, func() (err error) {
		if last, err = b.p.LastChange(b.t.Context(), secretKey(namespace, name)); err != nil {
			return err
		}
		if is := contentOf(b.t, last).ResourceVersion; last.Deleted || version != "" && is != version {
			return fmt.Errorf("%s is at %s (deleted: %v), want %s", name, is, last.Deleted, version)
		}
		return nil
	})
	return last
}

func contentOf(t *testing.T, of publish.StoredMessage) (is metav1.ObjectMeta) {
	t.Helper()
	var object struct{ Metadata metav1.ObjectMeta }
	if len(of.Change.Object) > 0 {
		if err := json.Unmarshal(of.Change.Object, &object); err != nil {
			t.Fatal(err)
		}
	}
	return object.Metadata
}

// gone waits until the stream holds the deletion of a Secret.
func (b *secretTestEnv) gone(namespace, name string) {
	b.t.Helper()
	testenv.Eventually(b.t, within, func() error {
		last, err := b.p.LastChange(b.t.Context(), secretKey(namespace, name))
		if err == nil && !last.Deleted {
			err = errors.New(name + " is on the bus")
		}
		return err
	})
}

// untold expects no message about a Secret, once the stream holds a later change.
func (b *secretTestEnv) untold(namespace, name string) {
	b.t.Helper()
	if last, err := b.p.LastChange(b.t.Context(), secretKey(namespace, name)); !errors.Is(err, publish.ErrNoMessage) {
		b.t.Errorf("of %s the bus has %+v, %v", name, last.Entry, err)
	}
}

// beat returns the newest barrier.
func (b *secretTestEnv) beat() (*eventv1.Barrier, time.Time) {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), topology.Changes)
	if err != nil {
		b.t.Fatal(err)
	}
	var msg *jetstream.RawStreamMsg
	testenv.Eventually(b.t, within, func() (err error) {
		msg, err = stream.GetLastMsgForSubject(b.t.Context(), topology.BarrierSubject("local"))
		return err
	})
	var h eventv1.Barrier
	if err := proto.Unmarshal(msg.Data, &h); err != nil {
		b.t.Fatal(err)
	}
	return &h, msg.Time
}

// For a Secret that an object names, the stream holds only its identity and version. Other Secrets never reach it.
func TestWatcherPublishesNamedSecretsWithoutContent(t *testing.T) {
	b := newSecretTestEnv(t, "team-a", "team-b")
	b.secret("team-a", "before")
	b.user("team-a", "anna", "before")
	b.secret("team-a", "unnamed")
	b.secret("team-b", "before") // It is of another namespace, in which no object names it.
	b.follow("team-a", "team-b")
	is := contentOf(t, b.told("team-a", "before", ""))
	if want := (metav1.ObjectMeta{Name: "before", Namespace: "team-a", UID: is.UID, ResourceVersion: is.ResourceVersion}); fmt.Sprint(is) != fmt.Sprint(want) {
		t.Errorf("the bus says %+v", is)
	}
	b.told("team-a", "before", b.change("before", "-2"))

	names := map[string]string{}
	for what, of := range map[string]struct {
		kind        kinds.Kind
		spec        map[string]any
		annotations map[string]string
		secrets     []string
	}{
		"user":       {kinds.OpenSearchUsers(), map[string]any{"opensearchCluster": named("search"), "passwordFrom": map[string]any{"name": "user", "key": "key"}}, nil, []string{"user"}},
		"annotation": {kinds.OpenSearchClusters(), map[string]any{}, map[string]string{"entail.dev/connection-secret": "annotation"}, []string{"annotation"}},
		"connection": {kinds.OpenSearchClusters(), map[string]any{"connection": map[string]any{
			"url": "https://search.example.com:9200", "clientCertificateSecret": named("certificate"), "caSecret": named("authority"), "adminCredentialsSecret": named("admin"),
		}}, nil, []string{"certificate", "authority", "admin"}},
	} {
		for _, name := range of.secrets {
			b.secret("team-a", name)
			names[name] = what
		}
		b.put(of.kind, "team-a", what, of.spec, of.annotations)
	}
	b.put(kinds.OpenSearchClusters(), "team-a", "operated", map[string]any{}, nil)
	b.secret("team-a", "operated-ca")
	b.secret("team-a", "operated-admin-password")
	patch := []byte(`{"status":{"phase":"RUNNING"}}`)
	if _, err := b.kube.DynamicClient(t).Resource(kinds.OpenSearchClusters().GroupVersionResource()).Namespace("team-a").Patch(t.Context(), "operated", "application/merge-patch+json",
		patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	names["operated-ca"], names["operated-admin-password"] = "operated", "operated"
	for name := range names {
		b.told("team-a", name, "")
		b.told("team-a", name, b.change(name, "-2"))
	}
	b.untold("team-a", "unnamed")
	b.untold("team-b", "before")
	values := []string{password, annotated, labelled, corev1.LastAppliedConfigAnnotation, "managedFields"}
	if found, err := leak.FindSecrets(b.nats.DataFiles(), values...); err != nil || len(found) > 0 {
		t.Errorf("on the bus are %v, %v", found, err)
	}
	if _, err := b.js.Publish(t.Context(), "entail.changes.planted.x.y.z.w", []byte(annotated)); err != nil {
		t.Fatal(err)
	}
	if found, err := leak.FindSecrets(b.nats.DataFiles(), values...); err != nil || len(found) == 0 {
		t.Errorf("what was planted on the bus is not found, %v", err)
	}
}

func named(name string) map[string]any { return map[string]any{"name": name} }

func TestWatcherPublishesSecretWhileNamed(t *testing.T) {
	b := newSecretTestEnv(t, "team-a")
	b.follow("team-a")
	b.user("team-a", "anna", "passwords")
	b.secret("team-a", "passwords")
	first := b.told("team-a", "passwords", "")
	b.user("team-a", "ben", "passwords")
	b.deleteUser("anna") // Another object still names it.
	b.told("team-a", "passwords", b.change("passwords", "-2"))
	for range 3 { // The Secret itself does not change.
		b.deleteUser("ben")
		b.gone("team-a", "passwords")
		b.user("team-a", "ben", "passwords")
		b.told("team-a", "passwords", "")
	}
	b.deleteUser("ben")
	b.gone("team-a", "passwords")
	b.change("passwords", "-3")
	b.user("team-a", "kim", "others")
	b.secret("team-a", "others")
	b.told("team-a", "others", "") // All earlier changes are done.
	b.gone("team-a", "passwords")
	b.user("team-a", "ben", "passwords")
	b.told("team-a", "passwords", b.change("passwords", "-4"))

	b.deleteSecret("passwords")
	b.gone("team-a", "passwords")
	b.secret("team-a", "passwords")
	if again := b.told("team-a", "passwords", ""); again.UID == first.UID {
		t.Errorf("the Secret that was made anew is still %s", again.UID)
	}
	b.told("team-a", "passwords", b.change("passwords", "-5"))
}

// The stream is right after any changes without a watcher, and after a change of the followed namespaces.
func TestRestartedWatcherCorrectsSecrets(t *testing.T) {
	b := newSecretTestEnv(t, "team-a", "team-b")
	for _, namespace := range []string{"team-a", "team-b"} {
		for _, name := range []string{"changed", "forgotten", "deleted", "anew", "same"} {
			b.secret(namespace, name)
			b.user(namespace, name, name)
		}
	}
	stop, _ := b.follow("team-a", "team-b")
	told := map[string]publish.StoredMessage{}
	for _, name := range []string{"changed", "forgotten", "deleted", "anew", "same"} {
		told[name] = b.told("team-a", name, "")
		b.told("team-b", name, "")
	}
	stop()
	version := b.change("changed", "-2")
	b.deleteUser("forgotten")
	b.deleteSecret("deleted")
	b.deleteSecret("anew")
	b.secret("team-a", "anew")
	stop, _ = b.follow("team-a")
	b.told("team-a", "changed", version)
	b.gone("team-a", "forgotten")
	b.gone("team-a", "deleted")
	testenv.Eventually(t, within, func() error {
		if is := b.told("team-a", "anew", ""); is.UID == told["anew"].UID {
			return errors.New("it is the one from before")
		}
		return nil
	})
	if is := b.told("team-a", "same", ""); is.Sequence != told["same"].Sequence {
		t.Errorf("what did not change was told again: %+v after %+v", is.Entry, told["same"].Entry)
	}
	for name := range told { // The watcher no longer follows that namespace.
		b.gone("team-b", name)
	}
	stop()
	stop, _ = b.follow()
	for name := range told {
		b.gone("team-a", name)
	}
	stop()
	b.follow("team-b")
	for name := range told {
		b.told("team-b", name, "")
	}
	if text := b.log.String(); strings.Contains(text, "resource versions went back") {
		t.Error("what was read at a version is taken for a cluster that went back in time")
	}
}

// A watcher without the right to the Secrets of one namespace follows everything else, and logs the missing right. The
// Secrets of that namespace leave the stream.
func TestForbiddenSecretNamespaceDoesNotBlockOthers(t *testing.T) {
	b := newSecretTestEnv(t, "team-a", "team-b")
	for _, namespace := range []string{"team-a", "team-b"} {
		b.secret(namespace, "passwords")
		b.user(namespace, "anna", "passwords")
	}
	b.namespace("team-c")
	stop, _ := b.follow("team-a", "team-b", "team-c")
	b.told("team-a", "passwords", "")
	b.told("team-b", "passwords", "")
	stop()
	if err := b.core.RbacV1().RoleBindings("team-b").Delete(t.Context(), "entail-watcher-secrets", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, url := b.follow("team-a", "team-b", "team-c")
	b.gone("team-b", "passwords")
	b.told("team-a", "passwords", b.change("passwords", "-2"))
	if n := (&testenv.RunningService{URL: url}).MetricValue(t, `entail_watcher_objects{kind="secrets/team-a"}`); n != 1 {
		t.Errorf("%g Secrets are followed", n)
	}
	b.apply("a", "")
	b.becomes()
	ready(t, url, "")
	testenv.Eventually(t, within, func() error {
		h, at := b.beat()
		if behind := h.GetBehind().AsDuration(); behind > 5*time.Second || time.Since(at) > 5*time.Second {
			return fmt.Errorf("a barrier of %s says that the bus is %s behind", at, behind)
		}
		return nil
	})
	for _, namespace := range []string{"team-b", "team-c"} {
		want := "kubectl create rolebinding entail-watcher-secrets -n " + namespace + " --clusterrole=entail-watcher-secrets --serviceaccount=entail-system:watcher"
		if said := strings.Count(b.log.String(), "may not be followed"); said < 2 || !strings.Contains(b.log.String(), want) {
			t.Errorf("of %s is said %d times that it may not be followed, and not how: %s", namespace, said, b.log)
		}
	}
	b.allow("team-b")
	b.told("team-b", "passwords", "")
}

// Changes of Secrets that no object names must not leave the watcher.
func TestUnnamedSecretChangesAreNotPublished(t *testing.T) {
	b := newSecretTestEnv(t, "team-a")
	b.secret("team-a", "passwords")
	b.secret("team-a", "unnamed")
	b.user("team-a", "anna", "passwords")
	b.follow("team-a")
	b.told("team-a", "passwords", "")
	consumer, err := b.js.CreateConsumer(t.Context(), topology.Changes, jetstream.ConsumerConfig{
		FilterSubject: topology.ChangesFilter("local", kinds.Secrets().GroupResource), DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckNonePolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		b.change("unnamed", fmt.Sprint("-", i))
	}
	b.told("team-a", "passwords", b.change("passwords", "-2"))
	msg, err := consumer.Next()
	if err != nil {
		t.Fatal(err)
	}
	if meta, err := msg.Metadata(); err != nil || meta.NumPending > 0 || msg.Subject() != topology.ChangeSubject(secretKey("team-a", "passwords")) {
		t.Errorf("the first message is on %s, and %d come after it, %v", msg.Subject(), meta.NumPending, err)
	}
}
