package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const twoClusters = `
apiVersion: v1
kind: Config
clusters:
- {name: east, cluster: {server: "https://east.example:6443"}}
- {name: west, cluster: {server: "https://west.example:6443"}}
contexts:
- {name: east, context: {cluster: east}}
- {name: west, context: {cluster: west}}
current-context: east
`

func TestRESTConfigFollowsKubectl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(twoClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		env    string
		kube   KubeConfig
		server string
		err    string
	}{
		"flag":             {"", KubeConfig{Kubeconfig: file}, "https://east.example:6443", ""},
		"flag and context": {"", KubeConfig{Kubeconfig: file, Context: "west"}, "https://west.example:6443", ""},
		"KUBECONFIG":       {file, KubeConfig{}, "https://east.example:6443", ""},
		"unknown context":  {file, KubeConfig{Context: "north"}, "", `context "north" does not exist`},
		"nothing":          {"/nowhere", KubeConfig{}, "", "use --kubeconfig, correct KUBECONFIG, or run in a cluster"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			cfg := Defaults()
			cfg.Kube = test.kube
			got, err := newRESTConfig("test-sync", cfg)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || got.Host != test.server || got.UserAgent != "entail-test-sync" {
				t.Fatalf("got %v, %v", got, err)
			}
		})
	}
}
