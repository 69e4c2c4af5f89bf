//go:build integration

package devserver

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/kinds"
)

func startKubeLocal(t *testing.T, dir string) *KubeLocal {
	t.Helper()
	binary, err := FindKubeLocal()
	if err != nil {
		t.Fatal(err)
	}
	k, err := StartKubeLocal(t.Context(), KubeLocalConfig{Binary: binary, Dir: dir, UnsafeNoFsync: true, Users: []string{"anne:staff"}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func objects(t *testing.T, k *KubeLocal) dynamic.Interface {
	t.Helper()
	cfg, err := k.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestKubeLocalKeepsCRDsAcrossRestart(t *testing.T) {
	dir := t.TempDir()
	k := startKubeLocal(t, dir)
	root, err := CheckoutRoot()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := k.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // The second time, the objects exist.
		if err := ApplyManifests(t.Context(), cfg, os.DirFS(filepath.Join(root, "deploy"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := ApplyServiceAccounts(t.Context(), cfg, os.DirFS(filepath.Join(root, "deploy"))); err != nil {
		t.Errorf("accounts, as soon as policies guard their bindings: %v", err)
	}
	list := func() error {
		for _, kind := range kinds.ConsumedKinds() {
			gvr := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource}
			if _, err := objects(t, k).Resource(gvr).List(t.Context(), metav1.ListOptions{}); err != nil && !kind.Optional {
				return err
			}
		}
		return nil
	}
	if err := list(); err != nil {
		t.Errorf("as soon as they are applied: %v", err)
	}
	server := k.Server
	if err := k.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "anne.kubeconfig")); err != nil {
		t.Errorf("the user's kubeconfig: %v", err)
	}
	k = startKubeLocal(t, dir)
	if err := ApplyServiceAccounts(t.Context(), cfg, os.DirFS(filepath.Join(root, "deploy"))); err != nil {
		t.Errorf("accounts, as soon as the server is back: %v", err)
	}
	if k.Server != server {
		t.Errorf("it came back at %s; want %s", k.Server, server)
	}
	if err := list(); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	checkRemoveManifestsKeepsShared(t, cfg, objects(t, k), os.DirFS(filepath.Join(root, "deploy")))
	k.Kill()
	select {
	case <-k.Done():
	case <-time.After(time.Second):
		t.Error("a killed server is not done")
	}
	if err := k.Stop(); err == nil {
		t.Error("stopping a killed server is no error")
	}
}

func TestStartKubeLocalWaitsForOrphanedServer(t *testing.T) {
	dir := t.TempDir()
	orphan := startKubeLocal(t, dir)
	if err := orphan.stdin.Close(); err != nil { // As if the process that started it were killed.
		t.Fatal(err)
	}
	k := startKubeLocal(t, dir)
	if !orphan.HasEnded() {
		t.Error("two servers have one directory")
	}
	if err := k.Stop(); err != nil {
		t.Error(err)
	}
}

func TestApplyManifestsNamesBadManifest(t *testing.T) {
	k := startKubeLocal(t, t.TempDir())
	defer func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	}()
	cfg, err := k.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"crd/not.yaml":           "{",
		"admission/another.yaml": "kind: ConfigMap",
		"crd/invalid.yaml":       "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, spec: {}}",
	} {
		files := fstest.MapFS{"crd/good.yaml": {}, "admission/good.yaml": {}, name: {Data: []byte(content)}}
		err := ApplyManifests(t.Context(), cfg, files)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v; want the file named", name, err)
		}
	}
	if err := ApplyManifests(t.Context(), cfg, fstest.MapFS{}); err == nil {
		t.Error("no files are no error")
	}
}

// checkRemoveManifestsKeepsShared makes other software change one CRD and then removes all manifests. Only the changed
// CRD must remain.
func checkRemoveManifestsKeepsShared(t *testing.T, cfg *rest.Config, client dynamic.Interface, deploy fs.FS) {
	t.Helper()
	const theirs = "users.iam.miloapis.com"
	column := []byte(`[{"op": "add", "path": "/spec/names/shortNames", "value": ["theirs"]}]`)
	if _, err := client.Resource(crdResource()).Patch(t.Context(), theirs, types.JSONPatchType, column, metav1.PatchOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}
	own, shared, err := InstalledCRDs(t.Context(), client, deploy)
	if err != nil || len(shared) != 1 || shared[0].GetName() != theirs || len(own) < 15 || slices.ContainsFunc(own, func(u *unstructured.Unstructured) bool { return u.GetName() == theirs }) {
		t.Errorf("%d kinds are ours, %d others', too (%v)", len(own), len(shared), err)
	}
	for range 2 { // The second time, nothing exists.
		if err := RemoveManifests(t.Context(), cfg, deploy); err != nil {
			t.Fatal(err)
		}
	}
	left, err := client.Resource(crdResource()).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].GetName() != theirs {
		t.Errorf("left are %d kinds (%v)", len(left.Items), err)
	}
}
