//go:build integration

package projection

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/openfga/language/pkg/go/transformer"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestSyncNamespaceWaitsForModelAndReportsInvalidTuples(t *testing.T) {
	server := testenv.LazyOpenFGA(t)
	hand := server.Client(t)
	rules := []infer.Rule{
		{Name: "r", Parent: infer.Role{Name: "admin"}, Child: infer.Role{Name: "viewer"}},
		{Name: "long", Parent: infer.Role{Name: "admin"}, Child: infer.Role{Name: strings.Repeat("v", 253)}},
	}
	var log bytes.Buffer
	p := New(Config{
		OpenFGA: hand, Store: "roles", Roles: RoleRelation{"role", "assignee"}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Rules: func(namespace string) *infer.RuleSet {
			return infer.NewRuleSet(namespace, rules, infer.DefaultPolicy())
		},
	})
	waits := func(what string) {
		t.Helper()
		p.ForgetTuples()
		if err := p.SyncNamespace(t.Context(), "team"); !fault.IsUnavailable(err) {
			t.Errorf("without %s: %v, want an error that waits", what, err)
		}
	}
	waits("a store")
	id, err := hand.CreateStore(t.Context(), "roles")
	if err != nil {
		t.Fatal(err)
	}
	waits("a model")
	for _, step := range []struct {
		assignees, told string
		tuples          int
	}{
		{"[user]", "cannot hold rules", 0},
		{"[user, role#assignee]", "names are too long", 1},
	} {
		model, err := transformer.TransformDSLToProto("model\n  schema 1.1\ntype user\ntype role\n  relations\n    define assignee: " + step.assignees + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hand.WriteModel(t.Context(), id, model); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		p.ForgetTuples()
		if err := p.SyncNamespace(t.Context(), "team"); err != nil || !strings.Contains(log.String(), step.told) {
			t.Errorf("with %s: %v, and the log says %s", step.assignees, err, log.String())
		}
		found := 0
		for _, err := range hand.ReadTuples(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			found++
		}
		if found != step.tuples {
			t.Errorf("with %s there are %d tuples, want %d", step.assignees, found, step.tuples)
		}
	}
	if _, err := hand.CreateStore(t.Context(), "roles"); err != nil {
		t.Fatal(err)
	}
	waits("one store alone")
}
