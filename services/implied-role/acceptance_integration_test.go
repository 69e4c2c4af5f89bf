//go:build integration

package impliedrole_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// acceptanceStep is one step of a case: the change, the bindings that must then be generated, and those that must have
// kept their UID.
type acceptanceStep struct{ do, want, kept string }

// acceptance reads the cases of infer/testdata/acceptance.txt that the API server accepts.
func acceptance(t *testing.T) map[string][]acceptanceStep {
	t.Helper()
	text, err := os.ReadFile("infer/testdata/acceptance.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases, name := map[string][]acceptanceStep{}, ""
	var pure []string
	for line := range strings.Lines(string(text)) {
		mark, rest := line[:1], strings.TrimSpace(line[1:])
		switch mark {
		case "#", "\n":
		case "!":
			pure = append(pure, name)
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
	for _, name := range pure {
		delete(cases, name)
	}
	return cases
}

func TestAcceptance(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	n := 0
	for name, stages := range acceptance(t) {
		n++
		t.Run(name, func(t *testing.T) {
			b := b.in(fmt.Sprintf("case-%d", n))
			for _, s := range stages {
				before := b.identities(s.kept)
				b.do(s.do)
				b.becomes(s.want)
				if now := b.identities(s.kept); !maps.Equal(now, before) || len(now) != len(strings.Fields(s.kept)) {
					t.Errorf("after %s: UIDs of %s changed from %v to %v", s.do, s.kept, before, now)
				}
			}
		})
	}
	b.CheckNoWrites("a resync of all", func() { b.RequestResync("implied-role") })
}

func TestRulesApplyToTheirNamespaceOnly(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	other := b.in("other")
	b.do("a>b B=a{x}")
	other.do("B=a{x}")
	b.becomes("B:b{x}")
	other.becomes("")
	excluded := b.in(metav1.NamespacePublic)
	excluded.do("a>b B=a{x}")
	excluded.condition("a>b", "Accepted", "ExcludedNamespace")
	excluded.becomesNothing()
	excluded.do("-a>b -B")
}

func (b *testEnv) becomesNothing() {
	b.T.Helper()
	b.AwaitNoCalls()
	if got := b.generated(); got != "" {
		b.T.Errorf("generated %q", got)
	}
}
