//go:build integration

package opensearchsync_test

import (
	"encoding/pem"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// The status of a cluster reports why OpenSearch does not answer, so that users need no access to the log.
func TestClusterStatusReportsUnreachableReason(t *testing.T) {
	b := newTestEnv(t)
	b.Reflector()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	user, password := b.search.AdminLogin()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "https://" + closed.Addr().String()
	_ = closed.Close()
	connection := map[string]string{"url": b.search.URL(), "ca.crt": string(b.search.CA()), "username": user, "password": password}
	with := func(field, value string) map[string]string {
		changed := maps.Clone(connection)
		changed[field] = value
		return changed
	}
	clusters := kinds.OpenSearchClusters().InNamespace(namespace)
	b.connect()
	b.serve()
	b.AwaitCondition(clusters, cluster, "Reachable", "Answers")
	b.user("anna")
	b.state(kinds.OpenSearchUsers(), "anna", "CREATED", "")
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw}))
	for reason, changed := range map[string]map[string]string{
		"CertificateUnknown": with("ca.crt", authority), "Refused": with("url", nowhere),
	} {
		b.secret("connection", changed)
		b.AwaitCondition(clusters, cluster, "Reachable", reason)
	}
	b.secret("connection", with("password", second))
	b.AwaitCondition(clusters, cluster, "Reachable", "Unauthorized")
	b.Delete(kinds.OpenSearchUsers().InNamespace(namespace), "anna")
	b.held(kinds.OpenSearchUsers(), "anna", "answers 401")
	b.secret("connection", connection)
	b.AwaitCondition(clusters, cluster, "Reachable", "Answers")
	b.AwaitGone(kinds.OpenSearchUsers().InNamespace(namespace), "anna")
	b.absent("internalusers/anna")
}
