package infer

import (
	"os"
	"strings"
	"testing"
)

const (
	seed = "admin>developer admin>reviewer developer>writer writer>pro writer>noob "
	// cloud is a hierarchy of roles as clouds have it.
	cloud = "all_admin>network_admin all_admin>image_admin all_admin>object_admin all_admin>storage_admin all_admin>volume_admin " +
		"storage_admin>object_admin storage_admin>volume_admin network_admin>editor image_admin>editor object_admin>editor volume_admin>editor editor>reader "
)

// acceptanceStep is one step of a case: the change, the bindings that must then be generated, and those that must have
// kept their UID.
type acceptanceStep struct{ do, want, kept string }

// acceptance reads the cases of testdata/acceptance.txt.
func acceptance(t *testing.T) map[string][]acceptanceStep {
	t.Helper()
	text, err := os.ReadFile("testdata/acceptance.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases, name := map[string][]acceptanceStep{}, ""
	for line := range strings.Lines(string(text)) {
		mark, rest := line[:1], strings.TrimSpace(line[1:])
		switch mark {
		case "#", "\n", "!":
		case "+":
			cases[name] = append(cases[name], acceptanceStep{do: rest})
		case "=":
			cases[name][len(cases[name])-1].want = rest
		case "~":
			cases[name][len(cases[name])-1].kept = rest
		default:
			name = strings.TrimSpace(line)
		}
	}
	return cases
}

func TestAcceptance(t *testing.T) {
	cases := acceptance(t)
	if len(cases) < 20 {
		t.Fatalf("only %d cases were read", len(cases))
	}
	for name, stages := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSimulatedNamespace(t)
			for _, s := range stages {
				before := map[string]string{}
				for pair := range strings.FieldsSeq(s.kept) {
					before[pair] = string(w.identity(truncateNames(pair)))
				}
				w.do(s.do)
				w.settle()
				if got := w.generated(true); got != s.want {
					t.Errorf("after %s: %q, want %q", s.do, got, s.want)
				}
				for pair, uid := range before {
					if now := string(w.identity(truncateNames(pair))); now != uid || now == "" {
						t.Errorf("after %s: %s was recreated", s.do, pair)
					}
				}
			}
		})
	}
}

func truncateNames(pair string) (source, child string) {
	source, child, _ = strings.Cut(pair, ":")
	return source, child
}
