//go:build compose

package e2e

import (
	"net/http"
	"testing"

	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
)

// declarers is the number of users that declare concurrently.
const declarers = 3

// nothingIsLost kills the services and OpenFGA, and restarts NATS and the API server, while users declare tuples. Afterwards
// the last declaration of each user must be applied. Chaos covers the loss of single processes.
func nothingIsLost(t *testing.T, m *machine) {
	t.Helper()
	l := loaded(t, m.objects(t).Resource(resource("stores")), declarers)
	for _, blow := range [][]string{
		{"kill", "watcher", "store-sync", "tuple-sync", "openfga"},
		{"restart", "nats", "kubernetes"},
	} {
		compose(t, blow...)
		start(t)
	}
	l.stop(t, tuplev1connect.NewTupleServiceClient(&http.Client{Transport: bearer(m.token(t))}, m.TupleService))
}
