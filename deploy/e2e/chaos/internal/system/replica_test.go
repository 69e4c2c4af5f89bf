package system

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestReplicaReportsProgressAndReadiness(t *testing.T) {
	ready := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(ready)
			return
		}
		fmt.Fprint(w, "# HELP entail_messages_handled_total Messages.\n"+
			`entail_messages_handled_total{outcome="ok",service="s"} 40`+"\n"+
			`entail_messages_handled_total{outcome="retried",service="s"} 2`+"\n"+
			`entail_messages_handled_total_other{outcome="ok"} 9`+"\n"+
			`entail_reconciliations_total{outcome="changed"} 9`+"\n")
	}))
	r := &Replica{URL: server.URL}
	if n, err := r.HandledMessages(t.Context()); n != 42 || err != nil {
		t.Errorf("it has handled %v, %v", n, err)
	}
	if err := r.CheckReady(t.Context()); err != nil {
		t.Errorf("it is not ready: %v", err)
	}
	ready = http.StatusServiceUnavailable
	if err := r.CheckReady(t.Context()); err == nil {
		t.Error("it is ready though it says that it is not")
	}
	server.Close()
	if n, err := r.HandledMessages(t.Context()); err == nil {
		t.Errorf("one that is away has handled %v", n)
	}
}

func TestReplicaLinksCoverAllServers(t *testing.T) {
	nats, kube, fga := &Proxy{}, &Proxy{}, &Proxy{}
	for want, r := range map[int]*Replica{
		2: {NATS: []*Proxy{nats}, KubeLink: kube}, 3: {NATS: []*Proxy{nats}, KubeLink: kube, FGALink: fga}, 4: {NATS: []*Proxy{nats, nats}, KubeLink: kube, FGALink: fga},
	} {
		if links := r.AllLinks(); len(links) != want {
			t.Errorf("%d links, want %d", len(links), want)
		}
	}
}
