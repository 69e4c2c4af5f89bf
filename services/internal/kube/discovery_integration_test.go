//go:build integration

package kube_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestDiscoverResourcesListsServed(t *testing.T) {
	server := testenv.StartKube(t)
	c, err := kube.New(server.ServiceConfig(t, topology.StoreSync), "local", "test")
	if err != nil {
		t.Fatal(err)
	}
	for groupVersion, want := range map[string]string{"v1": "namespaces", "apps/v1": "deployments"} {
		list, err := c.DiscoverResources(t.Context(), groupVersion)
		if err != nil || !slices.ContainsFunc(list, func(r metav1.APIResource) bool { return r.Name == want && r.SingularName+"s" == want }) {
			t.Errorf("%s has %v, %v; want %s", groupVersion, list, err, want)
		}
	}
	for _, groupVersion := range []string{"apps/v9", "absent.example.com/v1", "v9"} {
		if _, err := c.DiscoverResources(t.Context(), groupVersion); !errors.Is(err, kube.ErrNotServed) {
			t.Errorf("%s: %v, want %v", groupVersion, err, kube.ErrNotServed)
		}
	}
	server.FailBefore(func(_ context.Context, op string) error { return errors.New("broken on purpose: " + op) })
	if _, err := c.DiscoverResources(t.Context(), "v1"); !fault.IsUnavailable(err) || errors.Is(err, kube.ErrNotServed) {
		t.Errorf("of a server that is away: %v", err)
	}
}
