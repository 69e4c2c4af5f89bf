//go:build integration

package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const within = 60 * time.Second

func connect(t *testing.T) (*Source, *testenv.KubeServer) {
	t.Helper()
	kube := testenv.StartKube(t)
	s, err := New(kube.ServiceConfig(t, topology.Watcher), "local")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ClusterUID(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, kube
}

// grantReadRight gives the source the right to read kinds that no service follows.
func grantReadRight(t *testing.T, kube *testenv.KubeServer, kinds ...kinds.Kind) {
	t.Helper()
	for _, kind := range kinds {
		rule := rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{kind.Group}, Resources: []string{kind.Resource}}
		kube.GrantServiceRight(t, topology.Watcher, rule)
	}
}

func spec(note string) map[string]any { return map[string]any{"coreModule": "module core # " + note} }

func TestClusterUIDIsUIDOfKubeSystem(t *testing.T) {
	s, kube := connect(t)
	epoch, err := s.ClusterUID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	system, err := kubernetes.NewForConfigOrDie(kube.AdminConfig()).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil || epoch != string(system.UID) {
		t.Errorf("epoch is %q, want %q (%v)", epoch, system.UID, err)
	}
	s.epoch = "that of another cluster"
	if _, err := s.ClusterUID(t.Context()); !errors.Is(err, ErrOtherCluster) {
		t.Errorf("error is %v, want ErrOtherCluster", err)
	}
}

func TestListPagesAreOneSnapshot(t *testing.T) {
	s, kube := connect(t)
	const count = 2*pageSize + 30
	for i := range count {
		kube.Apply(t, kinds.Stores(), fmt.Sprintf("store.%03d", i), spec(""))
	}
	var names []string
	page, err := s.List(t.Context(), kinds.Stores(), "")
	version := page.Version
	kube.Apply(t, kinds.Stores(), "store.zzz", spec("too late for this list"))
	for {
		if err != nil {
			t.Fatal(err)
		}
		if page.Version != version || len(page.Objects) > pageSize {
			t.Errorf("page of %d objects at version %s, want %s", len(page.Objects), page.Version, version)
		}
		for _, o := range page.Objects {
			names = append(names, o.Key.Name)
		}
		if page.Next == "" {
			break
		}
		page, err = s.List(t.Context(), kinds.Stores(), page.Next)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) != count || slices.Contains(names, "store.zzz") {
		t.Errorf("%d names, want %d and not the late one", len(names), count)
	}
}

func TestWatchContinuesFromList(t *testing.T) {
	s, kube := connect(t)
	kube.Apply(t, kinds.Stores(), "before", spec(""))
	page, err := s.List(t.Context(), kinds.Stores(), "")
	if err != nil {
		t.Fatal(err)
	}
	kube.Apply(t, kinds.Stores(), "x", spec("1"))
	kube.Apply(t, kinds.Stores(), "x", spec("2"))
	if err := kube.DynamicClient(t).Resource(storesResource()).Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var told []string
	for e, err := range s.Watch(ctx, kinds.Stores(), page.Version) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Bookmark {
			continue
		}
		if e.Version != e.ResourceVersion || e.Epoch == "" {
			t.Errorf("event %+v", e)
		}
		told = append(told, fmt.Sprintf("%s %v %v", e.Key.Name, e.Deleted, strings.Contains(string(e.Change.Object), "# 2")))
		if e.Deleted {
			break
		}
	}
	if want := []string{"x false false", "x false true", "x true true"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	for _, err := range s.Watch(ctx, kinds.Stores(), "1") {
		if !errors.Is(err, ErrExpired) {
			t.Errorf("watch from the beginning of time: %v, want ErrExpired", err)
		}
		break
	}
}

func storesResource() schema.GroupVersionResource {
	kind := kinds.Stores()
	return schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource}
}

func TestGetReturnsObjectOrNotFound(t *testing.T) {
	s, kube := connect(t)
	kube.Apply(t, kinds.Stores(), "with.dots", spec("1"))
	o, err := s.Get(t.Context(), kinds.Stores(), "", "with.dots")
	if err != nil || o.Key.Name != "with.dots" || o.Epoch == "" {
		t.Errorf("got %+v, %v", o.Change, err)
	}
	page, err := s.List(t.Context(), kinds.Stores(), "")
	if err != nil || len(page.Objects) != 1 || page.Objects[0].ContentHash != o.ContentHash {
		t.Errorf("listed %+v, %v: want the meaning of what was got", page.Objects, err)
	}
	if _, err := s.Get(t.Context(), kinds.Stores(), "", "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error is %v, want ErrNotFound", err)
	}
	kube.FailBefore(func(context.Context, string) error { return errors.New("the server was asked") })
	for _, name := range []string{"..", "../../../version", "a/b", "%2e%2e"} {
		for _, where := range [][2]string{{"", name}, {name, "x"}} {
			if _, err := s.Get(t.Context(), kinds.Stores(), where[0], where[1]); !errors.Is(err, ErrNotFound) {
				t.Errorf("name %q: %v, want it refused before the server is asked", name, err)
			}
		}
	}
}

func TestSecretRequestsAcceptMetadataOnly(t *testing.T) {
	s, server := connect(t)
	grantReadRight(t, server, secrets())
	api := kubernetes.NewForConfigOrDie(server.AdminConfig()).CoreV1().Secrets("default")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "source-test"}, StringData: map[string]string{"password": "hunter2"}}
	if _, err := api.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), secret.Name, metav1.DeleteOptions{}) })
	const encoded = "aHVudGVy" // The password in the encoding of the API server.
	raw, err := s.api.Get().AbsPath("/api/v1/namespaces/default/secrets").SetHeader("Accept", kube.AcceptHeader(secrets(), "PartialObjectMetadataList")).Do(t.Context()).Raw()
	if err != nil || strings.Contains(string(raw), encoded) || !strings.Contains(string(raw), secret.Name) {
		t.Errorf("server sent %s, %v", raw, err)
	}
	o, err := s.Get(t.Context(), secrets(), "default", secret.Name)
	if err != nil || o.Kind != "Secret" || strings.Contains(string(o.Change.Object), "password") {
		t.Errorf("got %s, %v", o.Change.Object, err)
	}
	page, err := s.List(t.Context(), secrets(), "")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(page.Objects, func(o Object) bool { return o.Key.Name == secret.Name })
	if i < 0 || page.Objects[i].ContentHash != o.ContentHash {
		t.Errorf("listed at %d, want the same meaning as when got", i)
	}
	for namespace, want := range map[string]int{"default": 1, "kube-system": 0} {
		page, err := s.ListNamed(t.Context(), secrets().InNamespace(namespace), secret.Name)
		if err != nil || len(page.Objects) != want || page.Version == "" || want > 0 && page.Objects[0].ContentHash != o.ContentHash {
			t.Errorf("by its name in %s are %+v, %v", namespace, page, err)
		}
		page, err = s.List(t.Context(), secrets().InNamespace(namespace), "")
		if err != nil || slices.ContainsFunc(page.Objects, func(o Object) bool { return o.Key.Namespace != namespace }) {
			t.Errorf("in %s are %+v, %v", namespace, page, err)
		}
	}
	secret.StringData["password"] = "hunter3"
	if _, err := api.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for e, err := range s.Watch(ctx, secrets(), page.Version) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Bookmark {
			continue
		}
		if e.ContentHash == o.ContentHash || strings.Contains(string(e.Change.Object), "password") {
			t.Errorf("a new value is %s with meaning %s", e.Change.Object, e.ContentHash)
		}
		break
	}
}

func TestErrNotServedRequiresDiscovery(t *testing.T) {
	s, kube := connect(t)
	crds := apiextensions.NewForConfigOrDie(kube.AdminConfig()).CustomResourceDefinitions()
	things := kinds.Kind{GroupResource: event.GroupResource{Group: "source.entail.test", Resource: "things"}, Version: "v1", Kind: "Thing"}
	nothings := kinds.Kind{GroupResource: event.GroupResource{Resource: "nothings"}, Version: "v1", Kind: "Nothing"}
	grantReadRight(t, kube, things, nothings)
	for _, kind := range []kinds.Kind{things, nothings} {
		if _, err := s.List(t.Context(), kind, ""); !errors.Is(err, ErrNotServed) {
			t.Errorf("list of %s: %v, want ErrNotServed", kind.GroupResource, err)
		}
	}
	crd := definition(things, "v2")
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = crds.Delete(context.WithoutCancel(t.Context()), crd.Name, metav1.DeleteOptions{}) })
	testenv.Eventually(t, within, func() error {
		_, err := s.List(t.Context(), things, "")
		if err == nil || !strings.Contains(err.Error(), "has version v2 of it, not v1") {
			return fmt.Errorf("list of another version: %w, want to be told", err)
		}
		return nil
	})
	newer := things
	newer.Version = "v2"
	testenv.Eventually(t, within, func() error {
		if _, err := s.List(t.Context(), newer, ""); err != nil {
			return err
		}
		if short, err := s.ShortNames(t.Context(), newer); err != nil || !slices.Contains(short, "thg") || !slices.Contains(short, "thing") {
			return fmt.Errorf("short names are %q (%w)", short, err)
		}
		return nil
	})
	page, err := s.List(t.Context(), newer, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Delete(t.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, within, func() error {
		if _, err := s.List(t.Context(), newer, ""); !errors.Is(err, ErrNotServed) {
			return fmt.Errorf("list after the definition has gone: %w, want ErrNotServed", err)
		}
		for _, err := range s.Watch(t.Context(), newer, page.Version) {
			if !errors.Is(err, ErrExpired) {
				return fmt.Errorf("watch after the definition has gone: %w, want ErrExpired", err)
			}
		}
		return nil
	})
}

func TestListUsesOlderServedVersion(t *testing.T) {
	s, kube := connect(t)
	crds := apiextensions.NewForConfigOrDie(kube.AdminConfig()).CustomResourceDefinitions()
	things := kinds.Kind{GroupResource: event.GroupResource{Group: "older.entail.test", Resource: "things"}, Version: "v2", FallbackVersion: "v1", Kind: "Thing"}
	grantReadRight(t, kube, things)
	crd := definition(things, "v1")
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = crds.Delete(context.WithoutCancel(t.Context()), crd.Name, metav1.DeleteOptions{}) })
	testenv.Eventually(t, within, func() error {
		_, err := s.List(t.Context(), things, "")
		return err
	})
	older := things
	older.Version = "v1"
	kube.Apply(t, older, "one", map[string]any{})
	page, err := s.List(t.Context(), things, "")
	if err != nil || len(page.Objects) != 1 || page.Objects[0].Version != "v1" || !strings.Contains(string(page.Objects[0].Change.Object), `"older.entail.test/v1"`) {
		t.Errorf("listed is %+v, %v", page.Objects, err)
	}
	if o, err := s.Get(t.Context(), things, "", "one"); err != nil || o.Version != "v1" {
		t.Errorf("got %+v, %v", o.Change, err)
	}
	if short, err := s.ShortNames(t.Context(), things); err != nil || !slices.Contains(short, "thg") {
		t.Errorf("short names are %q, %v", short, err)
	}
}

func definition(kind kinds.Kind, version string) *apiextensionsv1.CustomResourceDefinition {
	open := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: kind.GroupResource.String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: kind.Resource, Singular: "thing", Kind: kind.Kind, ShortNames: []string{"thg"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}},
			}},
		},
	}
}

func TestForbiddenKindIsNotUnserved(t *testing.T) {
	_, kube := connect(t)
	limited, err := New(kube.ServiceConfig(t, topology.ImpliedRole), "local")
	if err != nil {
		t.Fatal(err)
	}
	_, err = limited.List(t.Context(), kinds.Stores(), "")
	if !apierrors.IsForbidden(err) || errors.Is(err, ErrNotServed) || !strings.Contains(err.Error(), `cannot list resource "stores"`) {
		t.Errorf("list is %v, want forbidden, and what is", err)
	}
}
