package opensearch

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/devserver"
)

// createFakeInstallation creates the files that identify an installation.
func createFakeInstallation(t *testing.T, home string) {
	t.Helper()
	for _, file := range []string{
		filepath.Join(home, "plugins", plugin, "plugin-descriptor.properties"),
		filepath.Join(home, "config", plugin, "config.yml"),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindInstallationInCheckout(t *testing.T) {
	t.Setenv(InstallationEnv, "")
	t.Setenv(devserver.BinEnv, "")
	root, home := t.TempDir(), filepath.Join(t.TempDir(), "cached")
	createFakeInstallation(t, home)
	inside := filepath.Join(root, "services", "somewhere")
	for _, dir := range []string{inside, filepath.Join(root, "bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "go.work"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inside)
	if _, err := FindInstallation(); err == nil || !strings.Contains(err.Error(), "make opensearch") {
		t.Errorf("without one: %v; want what to do", err)
	}
	if err := os.Symlink(home, filepath.Join(root, "bin", "opensearch")); err != nil {
		t.Fatal(err)
	}
	resolved, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := FindInstallation(); err != nil || got != resolved {
		t.Errorf("got %q, %v; want %s", got, err, resolved)
	}
	t.Setenv(InstallationEnv, filepath.Join(root, "elsewhere"))
	if _, err := FindInstallation(); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("got %v; want where it is not", err)
	}
}

func TestPrepareFilesKeepsCredentialsAcrossRestarts(t *testing.T) {
	cfg := Config{Home: filepath.Join(t.TempDir(), "home"), Dir: t.TempDir(), UnsafeCheapHashes: true}
	if _, _, err := prepareFiles(cfg, time.Now()); err == nil || !strings.Contains(err.Error(), "make opensearch") {
		t.Errorf("without an installation: %v; want what to do", err)
	}
	createFakeInstallation(t, cfg.Home)
	now := time.Now()
	first, password, err := prepareFiles(cfg, now)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := prepareFiles(cfg, now.Add(certificateLifetime/2))
	if err != nil {
		t.Fatal(err)
	}
	if same != password || !bytes.Equal(first.ca.Certificate, again.ca.Certificate) || !bytes.Equal(first.admin.Key, again.admin.Key) {
		t.Error("a restart makes other credentials")
	}
	late, same, err := prepareFiles(cfg, now.Add(certificateLifetime))
	if err != nil {
		t.Fatal(err)
	}
	if same != password || bytes.Equal(first.ca.Certificate, late.ca.Certificate) {
		t.Error("expired certificates were not renewed, or the password changed")
	}
	if data, err := os.ReadFile(filepath.Join(cfg.Dir, security, "internal_users.yml")); err != nil || bytes.Contains(data, []byte(password)) {
		t.Errorf("the password stands in the configuration, or that cannot be read: %v", err)
	}
}

func TestCertificatesShareOneAuthority(t *testing.T) {
	c, err := loadCredentials(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca.Certificate)
	for name, of := range map[string]struct {
		certificate Certificate
		usage       x509.ExtKeyUsage
		host        string
	}{
		"node as server": {c.node, x509.ExtKeyUsageServerAuth, "127.0.0.1"},
		"node by name":   {c.node, x509.ExtKeyUsageServerAuth, "localhost"},
		"node as client": {c.node, x509.ExtKeyUsageClientAuth, ""},
		"administrator":  {c.admin, x509.ExtKeyUsageClientAuth, ""},
	} {
		block, _ := pem.Decode(of.certificate.Certificate)
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err == nil {
			_, err = parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: of.host, KeyUsages: []x509.ExtKeyUsage{of.usage}})
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStartExplainsMissingJava(t *testing.T) {
	t.Setenv("OPENSEARCH_JAVA_HOME", filepath.Join(t.TempDir(), "none"))
	cfg := Config{Home: filepath.Join(t.TempDir(), "home"), Dir: serverDir(t)}
	createFakeInstallation(t, cfg.Home)
	allowTraversal(t, cfg.Home)
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "install Java") {
		t.Errorf("got %v; want what to do", err)
	}
}

func TestStartQuotesLogOfFailure(t *testing.T) {
	home := createFakeJava(t, "echo the disk is full >&2; exit 3")
	cfg := Config{Home: home, Dir: serverDir(t), UnsafeCheapHashes: true}
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v; want the log", err)
	}
}

func TestCanceledStartDoesNotLeaveProcess(t *testing.T) {
	home := createFakeJava(t, "exec sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Config{Home: home, Dir: serverDir(t), UnsafeCheapHashes: true}); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v; want that it was called off", err)
	}
}

// createFakeJava creates an installation, and a script that replaces java.
func createFakeJava(t *testing.T, script string) (home string) {
	t.Helper()
	dir := serverDir(t)
	program := filepath.Join(dir, "bin", "java")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENSEARCH_JAVA_HOME", dir)
	home = filepath.Join(dir, "home")
	createFakeInstallation(t, home)
	return home
}

// serverDir returns a directory that the server's user can reach. Only this user can reach the directories of
// [testing.T].
func serverDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "entail-opensearch-") //nolint:usetesting // See above.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// allowTraversal lets all users traverse the directories above path.
func allowTraversal(t *testing.T, path string) {
	t.Helper()
	for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
