package main

import (
	"os"
	"strings"
	"testing"
)

func TestThePageHasTheHelpOfEveryCommand(t *testing.T) {
	want := renderPage()
	for _, command := range []string{"entail up", "entail status", "entail credentials", "entail policy compile"} {
		if !strings.Contains(want, "\n## "+command+"\n") {
			t.Errorf("%s is not there", command)
		}
	}
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 && strings.Contains(want, home) {
		t.Error("it has a path of this machine")
	}
	if got, err := os.ReadFile("../../../../../docs/reference/commands.md"); err != nil || string(got) != want {
		t.Errorf("docs/reference/commands.md is another: %v; run `make docs`", err)
	}
}
