package kinds_test

import (
	"os"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestByResourceFindsEveryKind(t *testing.T) {
	seen := map[event.GroupResource]bool{}
	for _, kind := range kinds.ConsumedKinds() {
		if seen[kind.GroupResource] {
			t.Errorf("%s is listed twice", kind.GroupResource)
		}
		seen[kind.GroupResource] = true
		if kind.Kind == "" || kind.Version == "" || kind.Resource == "" {
			t.Errorf("%+v is incomplete", kind)
		}
		if found, ok := kinds.ByResource(kind.GroupResource); !ok || found != kind {
			t.Errorf("%s leads to %+v", kind.GroupResource, found)
		}
	}
	if found, ok := kinds.ByResource(event.GroupResource{Resource: "pods"}); ok {
		t.Errorf("pods: got %+v, want none", found)
	}
}

func TestConsumedKindsExcludeSecrets(t *testing.T) {
	for _, kind := range kinds.ConsumedKinds() {
		if kind.GroupResource == kinds.Secrets().GroupResource || kind.ReferencedOnly || kind.Namespace != "" {
			t.Errorf("%+v is followed everywhere", kind)
		}
	}
	if kind := kinds.Secrets().InNamespace("a"); !kind.ReferencedOnly || !kind.MetadataOnly || kind.Namespace != "a" || kind == kinds.Secrets() {
		t.Errorf("Secrets of a namespace are %+v", kind)
	}
}

func TestClusterScopedKindsDoNotHaveNamespace(t *testing.T) {
	for _, kind := range []kinds.Kind{kinds.Stores(), kinds.AuthorizationModels(), kinds.PolicyDocuments(), kinds.ImpliedRoles()} {
		definition, err := os.ReadFile("../../../deploy/crd/" + kind.Group + "_" + kind.Resource + ".yaml")
		if err != nil || strings.Contains(string(definition), "\n  scope: Cluster\n") != kind.ClusterScoped {
			t.Errorf("%s: got Global %v, %v", kind, kind.ClusterScoped, err)
		}
	}
	for kind, global := range map[kinds.Kind]bool{
		kinds.Roles(): false, kinds.RoleBindings(): false, kinds.ClusterRoles(): true, kinds.ClusterRoleBindings(): true, kinds.CustomResourceDefinitions(): true,
	} {
		if kind.ClusterScoped != global {
			t.Errorf("%s: got Global %v", kind, kind.ClusterScoped)
		}
	}
}
