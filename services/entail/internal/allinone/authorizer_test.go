package allinone

import (
	"crypto/tls"
	"os"
	"strings"
	"testing"
)

func TestAuthorizationConfigIsShippedOneWithoutNodeAuthorizer(t *testing.T) {
	cfg := Defaults()
	cfg.Ports = Ports{}
	m := &localSystem{cfg: cfg, dir: t.TempDir()}
	if err := m.writeAuthorizerFiles(); err != nil {
		t.Fatal(err)
	}
	defer m.authorizer.listener.Close()
	for name, c := range map[string]struct{ has, lacks string }{
		"authorization.yaml": {"kubeConfigFile: " + m.authorizer.filePath("kubeconfig"), "type: Node"},
		"kubeconfig":         {"server: https://" + m.authorizer.listener.Addr().String(), "token"},
	} {
		data, err := os.ReadFile(m.authorizer.filePath(name))
		if text := string(data); err != nil || !strings.Contains(text, c.has) || strings.Contains(text, c.lacks) {
			t.Errorf("%s is %s, %v", name, data, err)
		}
	}
	if data, err := os.ReadFile(m.cfg.authorization); err != nil || strings.Count(string(data), "expression:") != 5 || !strings.Contains(string(data), "type: RBAC") {
		t.Errorf("the API server reads %s, %v", data, err)
	}
	if _, err := tls.LoadX509KeyPair(m.authorizer.filePath("tls.crt"), m.authorizer.filePath("tls.key")); err != nil {
		t.Error(err)
	}
}

func TestExternalClusterDoesNotNeedLocalAuthorizer(t *testing.T) {
	cfg := Defaults()
	cfg.UseCluster = true
	m := &localSystem{cfg: cfg, dir: t.TempDir()}
	if err := m.writeAuthorizerFiles(); err != nil || m.authorizer != nil || m.cfg.authorization != "" {
		t.Errorf("%+v, %v", m.authorizer, err)
	}
}
