package devserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestStartKubeLocalExplainsMissingProgram(t *testing.T) {
	for _, binary := range []string{"", filepath.Join(t.TempDir(), "kube-local")} {
		_, err := StartKubeLocal(t.Context(), KubeLocalConfig{Binary: binary, Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "make kube-local") {
			t.Errorf("got %v; want what to do", err)
		}
	}
}

func TestStartKubeLocalQuotesFailure(t *testing.T) {
	cases := map[string]struct{ script, want string }{
		"ends early":      {script: "echo 'the data directory is in use' >&2; exit 1", want: "the data directory is in use"},
		"says much":       {script: "head -c 100000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1", want: "the end"},
		"talks otherwise": {script: "echo ready; cat", want: "ready line"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := StartKubeLocal(t.Context(), KubeLocalConfig{Binary: shellScript(t, tc.script), Dir: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 2*tailBytes {
				t.Errorf("got %.300v; want %q", err, tc.want)
			}
		})
	}
}

func TestCanceledStartKubeLocalDoesNotLeaveProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := StartKubeLocal(ctx, KubeLocalConfig{Binary: shellScript(t, "cat"), Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want %v", err, context.Canceled)
	}
}

func TestKubeLocalCommandArguments(t *testing.T) {
	cfg := KubeLocalConfig{
		Dir: "data", Port: 6443, Users: []string{"anne:staff"}, AuthorizationConfig: "authz.yaml", UnsafeNoFsync: true,
	}
	want := strings.Fields("--exit-with-stdin --data-dir data --port 6443 --unsafe-no-fsync --authorization-config authz.yaml --user anne:staff")
	if got := cfg.commandArguments(); !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}

func shellScript(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kube-local")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
