package system

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestReplicaReportsProgress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "# TYPE entail_messages_handled_total counter\n",
			"entail_messages_handled_total{outcome=\"ok\",service=\"x\"} 40\n",
			"entail_messages_handled_total{outcome=\"retried\",service=\"x\"} 2\n",
			"entail_reconciliations_total{outcome=\"changed\",service=\"x\"} 7\n")
	}))
	r := &Replica{URL: server.URL}
	if n, err := r.HandledMessages(t.Context()); n != 42 || err != nil {
		t.Errorf("handled %v, error %v", n, err)
	}
	server.Close()
	if n, err := r.HandledMessages(t.Context()); err == nil {
		t.Errorf("who is gone has handled %v", n)
	}
}
