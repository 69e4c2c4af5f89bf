//go:build integration

package watcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

// targetTestEnv is a bed in which ProtectedResources are followed.
type targetTestEnv struct{ *testEnv }

func newTargetTestEnv(t *testing.T) targetTestEnv { return targetTestEnv{newTestEnv(t)} }

func (b targetTestEnv) run() (stop func()) {
	b.t.Helper()
	cfg := watcher.Defaults()
	cfg.Kinds = append(followed(), kinds.ProtectedResources().GroupResource.String())
	stop, _ = b.runAs(cfg, b.kube.ServiceConfig(b.t, topology.Watcher))
	return stop
}

// register registers a kind of the core API.
func (b targetTestEnv) register(kind, plural string) {
	b.t.Helper()
	b.kube.Apply(b.t, kinds.ProtectedResources(), plural, map[string]any{
		"serviceRef": map[string]any{"name": "core.miloapis.com"}, "kind": kind, "plural": plural, "singular": strings.ToLower(kind),
		"permissions": []any{"get"},
	})
}

func (b targetTestEnv) unregister(plural string) {
	b.t.Helper()
	kind := kinds.ProtectedResources()
	if err := b.kube.DynamicClient(b.t).Resource(kind.GroupVersionResource()).Delete(b.t.Context(), plural, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// permit grants the watcher the right to read ConfigMaps.
func (b targetTestEnv) permit() {
	b.t.Helper()
	b.kube.GrantServiceRight(b.t, topology.Watcher, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}})
}

// aggregate grants rights by an aggregated ClusterRole, as the documentation describes.
func (b targetTestEnv) aggregate() {
	b.t.Helper()
	manifest, err := rbac.TargetRolesManifest([]event.GroupResource{core("configmaps")})
	if err != nil {
		b.t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(manifest, &role); err != nil {
		b.t.Fatal(err)
	}
	roles := b.client().RbacV1().ClusterRoles()
	if _, err := roles.Create(b.t.Context(), &role, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = roles.Delete(context.WithoutCancel(b.t.Context()), role.Name, metav1.DeleteOptions{}) })
}

func (b targetTestEnv) client() kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(b.kube.AdminConfig())
}

// configMap creates a ConfigMap with everything that must not be published, and another that owns it.
func (b targetTestEnv) configMap(name string) *corev1.ConfigMap {
	b.t.Helper()
	create := func(m *corev1.ConfigMap) *corev1.ConfigMap {
		made, err := b.client().CoreV1().ConfigMaps("default").Create(b.t.Context(), m, metav1.CreateOptions{})
		if err != nil {
			b.t.Fatal(err)
		}
		return made
	}
	owner := create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner-of-" + name}})
	return create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"label": "hidden"}, Annotations: map[string]string{"annotation": "hidden"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
		},
		Data: map[string]string{"content": "hidden"},
	})
}

func core(plural string) event.GroupResource {
	return event.GroupResource{Resource: plural, Target: true}
}

func target(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: core("configmaps"), Namespace: "default", Name: name}
}

// tells waits until the last marker of a kind is right.
func (b targetTestEnv) tells(plural string, right func(*eventv1.SnapshotMarker) bool) (m *eventv1.SnapshotMarker) {
	b.t.Helper()
	testenv.Eventually(b.t, within, func() (err error) {
		if m, err = b.p.LastMarker(b.t.Context(), "local", core(plural)); err == nil && !right(m) {
			err = fmt.Errorf("it tells %v", m)
		}
		return err
	})
	return m
}

func observed(m *eventv1.SnapshotMarker) bool { return m.GetServed() && m.GetProblem() == "" }

func (b targetTestEnv) has(k event.Key) (s publish.StoredMessage) {
	b.t.Helper()
	testenv.Eventually(b.t, within, func() (err error) {
		s, err = b.p.LastChange(b.t.Context(), k)
		return err
	})
	return s
}

func TestRegisteredKindIsPublishedAsMetadata(t *testing.T) {
	b := newTargetTestEnv(t)
	b.permit()
	before := b.configMap("before")
	b.run()
	b.register("ConfigMap", "configmaps")
	if m := b.tells("configmaps", observed); m.GetKind() != "ConfigMap" || !m.GetNamespaced() || !m.GetTarget() {
		t.Errorf("its marker is %v", m)
	}
	got := b.has(target("before"))
	if got.UID != string(before.UID) || strings.Contains(string(got.Change.Object), "hidden") || strings.Contains(string(got.Change.Object), "managedFields") ||
		!strings.Contains(string(got.Change.Object), `"name":"owner-of-before"`) {
		t.Errorf("on the bus is %s of %s", got.Change.Object, got.UID)
	}
	before.Data["content"] = "hidden, too"
	if _, err := b.client().CoreV1().ConfigMaps("default").Update(t.Context(), before, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.configMap("after")
	b.has(target("after"))
	if again := b.has(target("before")); again.Sequence != got.Sequence {
		t.Errorf("a change of its content is published: %+v", again)
	}
	if err := b.client().CoreV1().ConfigMaps("default").Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, within, func() error {
		if gone := b.has(target("before")); !gone.Deleted || gone.UID != string(before.UID) {
			return fmt.Errorf("it is %+v", gone)
		}
		return nil
	})
}

func TestForbiddenKindDoesNotBlockOthers(t *testing.T) {
	b := newTargetTestEnv(t)
	b.register("ConfigMap", "configmaps")
	b.register("Nothing", "nothings")
	b.configMap("one")
	b.apply("demo", "1")
	b.run()
	m := b.tells("configmaps", func(m *eventv1.SnapshotMarker) bool { return m.GetProblem() != "" })
	if m.GetServed() || !strings.Contains(m.GetProblem(), "entail iam observe") {
		t.Errorf("it tells %v", m)
	}
	if m := b.tells("nothings", func(m *eventv1.SnapshotMarker) bool { return m.GetProblem() != "" }); !strings.Contains(m.GetProblem(), "does not serve") {
		t.Errorf("it tells %v", m)
	}
	b.becomes()
	testenv.Eventually(t, within, func() error { return b.current(t.Context(), kinds.ProtectedResources()) })
	b.aggregate()
	if m := b.tells("configmaps", observed); m.GetCount() < 1 {
		t.Errorf("it tells %v", m)
	}
	b.has(target("one"))
}

func TestUnregisteredKindIsWithdrawn(t *testing.T) {
	b := newTargetTestEnv(t)
	b.permit()
	b.register("ConfigMap", "configmaps")
	b.configMap("two")
	stop := b.run()
	b.tells("configmaps", observed)
	b.has(target("two"))
	withdrawn := func(when string) {
		t.Helper()
		b.tells("configmaps", (*eventv1.SnapshotMarker).GetWithdrawn)
		if _, err := b.p.LastChange(t.Context(), target("two")); !errors.Is(err, publish.ErrNoMessage) {
			t.Errorf("%s: the bus has its object still: %v", when, err)
		}
	}
	b.unregister("configmaps")
	withdrawn("while it is watched")
	b.register("ConfigMap", "configmaps")
	b.tells("configmaps", observed)
	b.has(target("two"))
	stop()
	b.unregister("configmaps")
	b.run()
	withdrawn("while nobody watched")
}

// The marker of another watcher, whose term is over, must not stay.
func TestLeaderReplacesMarkerOfFormerLeader(t *testing.T) {
	b := newTargetTestEnv(t)
	b.permit()
	b.register("ConfigMap", "configmaps")
	b.configMap("four")
	b.run()
	right := b.tells("configmaps", observed)
	for name, change := range map[string]func(*eventv1.SnapshotMarker){
		"withdrawn": func(m *eventv1.SnapshotMarker) { m.Withdrawn = true },
		"refused":   func(m *eventv1.SnapshotMarker) { m.Served, m.Problem = false, "nobody knows" },
	} {
		wrong := proto.CloneOf(right)
		change(wrong)
		if err := b.p.PublishMarker(t.Context(), wrong); err != nil {
			t.Fatal(name, err)
		}
		b.tells("configmaps", func(m *eventv1.SnapshotMarker) bool { return observed(m) && !m.GetWithdrawn() })
	}
	if _, err := b.p.PurgeTargetKind(t.Context(), "local", core("configmaps")); err != nil {
		t.Fatal(err)
	}
	b.has(target("four"))
}

// A consumer that has the marker of ProtectedResources must find a marker of each registered kind.
func TestTargetMarkersPrecedeRegistrationsAfterStreamLoss(t *testing.T) {
	b := newTargetTestEnv(t)
	b.permit()
	b.register("ConfigMap", "configmaps")
	b.register("Nothing", "nothings")
	b.configMap("three")
	b.run()
	b.tells("configmaps", observed)
	testenv.Eventually(t, within, func() error { return b.current(t.Context(), kinds.ProtectedResources()) })
	for range 3 {
		if err := b.js.DeleteStream(t.Context(), topology.Changes); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, within, func() error { return b.current(t.Context(), kinds.ProtectedResources()) })
		streamID, err := b.p.StreamID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, plural := range []string{"configmaps", "nothings"} {
			if m, err := b.p.LastMarker(t.Context(), "local", core(plural)); err != nil || m.GetStream() != streamID {
				t.Errorf("of %s it tells %v, %v", plural, m, err)
			}
		}
		if _, err := b.p.LastChange(t.Context(), target("three")); err != nil {
			t.Errorf("an object is not there: %v", err)
		}
	}
}
