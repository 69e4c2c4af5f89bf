//go:build compose

package e2e

import (
	"net/http"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
)

// declarers is how many declare at a time.
const declarers = 3

// nothingIsLost strikes everything in turn while people go on declaring. Then it must be as they declared last.
func nothingIsLost(t *testing.T, m *machine) {
	t.Helper()
	config := m.config(t)
	config.QPS = -1 // There are many people.
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	l := loaded(t, objects.Resource(resource("stores")), declarers)
	for _, blow := range [][]string{
		{"kill", "tuple-sync"},
		{"restart", "nats"},
		{"kill", "watcher", "store-sync"},
		{"restart", "kubernetes"},
		{"kill", "openfga"},
	} {
		compose(t, blow...)
		start(t)
	}
	l.stop(t, tuplev1connect.NewTupleServiceClient(&http.Client{Transport: bearer(m.token(t))}, m.TupleService))
}
