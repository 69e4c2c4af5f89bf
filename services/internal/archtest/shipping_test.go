package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// commandNames returns the names of all services. Each has a command.
func commandNames(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob(filepath.Join(root, "*", "cmd", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, main := range mains {
		dir := filepath.Dir(main)
		if service := filepath.Base(filepath.Dir(filepath.Dir(dir))); service != "internal" {
			names = append(names, filepath.Base(dir))
		}
	}
	if len(names) < 5 {
		t.Fatalf("services are only %q", names)
	}
	return names
}

// Every program that the Makefile builds also has an image.
func TestEveryServiceIsShipped(t *testing.T) {
	for file, line := range map[string]string{
		"../deploy/docker/Dockerfile": `(?m)^FROM service AS %s$`,
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, service := range commandNames(t) {
			if !regexp.MustCompile(strings.ReplaceAll(line, "%s", service)).Match(text) {
				t.Errorf("%s has no %s", file, service)
			}
		}
	}
}
