package devserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindKubeLocalInCheckout(t *testing.T) {
	t.Setenv(KubeLocalEnv, "")
	t.Setenv(BinEnv, "")
	root := t.TempDir()
	inside := filepath.Join(root, "services", "somewhere")
	for _, dir := range []string{inside, filepath.Join(root, "bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(root, "bin", "kube-local")
	for _, file := range []string{binary, filepath.Join(root, "go.work")} {
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(inside)
	if got, err := FindKubeLocal(); err != nil || !sameFile(t, got, binary) {
		t.Errorf("got %q, %v; want %s", got, err, binary)
	}
	other := filepath.Join(root, "other")
	t.Setenv(KubeLocalEnv, other)
	if _, err := FindKubeLocal(); err == nil || !strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), "make kube-local") {
		t.Errorf("got %v; want the path and what to do", err)
	}
	if err := os.WriteFile(other, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := FindKubeLocal(); err != nil || got != other {
		t.Errorf("got %q, %v; want %s", got, err, other)
	}
}

func TestFindKubeLocalOutsideCheckoutExplainsRemedy(t *testing.T) {
	t.Setenv(KubeLocalEnv, "")
	t.Setenv(BinEnv, "")
	t.Chdir(t.TempDir())
	if _, err := CheckoutRoot(); err == nil || !strings.Contains(err.Error(), "go.work") {
		t.Errorf("got %v; want what was looked for", err)
	}
	if _, err := FindKubeLocal(); err == nil || !strings.Contains(err.Error(), "make kube-local") {
		t.Errorf("got %v; want what to do", err)
	}
}

func TestFindProgramPrefersEnvironment(t *testing.T) {
	named, root := t.TempDir(), t.TempDir()
	t.Setenv(BinEnv, named)
	t.Chdir(root)
	if err := os.Mkdir("bin", 0o755); err != nil {
		t.Fatal(err)
	}
	inNamed, inCheckout := filepath.Join(named, "openfga"), filepath.Join(root, "bin", "openfga")
	for _, file := range []string{"go.work", inCheckout} {
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := FindProgram("openfga"); err != nil || !sameFile(t, got, inCheckout) {
		t.Errorf("got %q, %v; want %s", got, err, inCheckout)
	}
	if err := os.WriteFile(inNamed, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := FindProgram("openfga"); err != nil || got != inNamed {
		t.Errorf("got %q, %v; want %s", got, err, inNamed)
	}
	if _, err := FindProgram("nats-server"); err == nil || !strings.Contains(err.Error(), "make bin/nats-server") || !strings.Contains(err.Error(), named) {
		t.Errorf("got %v; want the places and what to do", err)
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	first, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(first, second)
}
