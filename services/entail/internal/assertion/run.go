package assertion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/policy"
)

// Failure is an assertion that does not hold, or a line that cannot be read.
type Failure struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Scenario is the name of the scenario; it may be empty.
	Scenario string `json:"scenario,omitempty"`
	Message  string `json:"message"`
	// Trail explains the answer of OpenFGA.
	Trail []string `json:"trail,omitempty"`
}

// Result counts passed assertions and lists failures.
type Result struct {
	Passed   int       `json:"passed"`
	Failures []Failure `json:"failures"`
}

// FailureLines returns the failures for people, each with its trail.
func (r Result) FailureLines() []string {
	var lines []string
	for _, f := range r.Failures {
		name := ""
		if f.Scenario != "" {
			name = f.Scenario + ": "
		}
		lines = append(lines, fmt.Sprintf("%s:%d: %s%s", f.File, f.Line, name, f.Message))
		for _, step := range f.Trail {
			lines = append(lines, "    "+step)
		}
	}
	return lines
}

// Text returns the result for people.
func (r Result) Text() string {
	lines := append(r.FailureLines(), fmt.Sprintf("%d passed, %d failed", r.Passed, len(r.Failures)))
	return strings.Join(lines, "\n") + "\n"
}

// CompiledPolicy is a policy with its compiled model.
type CompiledPolicy struct {
	Policy *policy.Policy
	Model  *openfgav1.AuthorizationModel
}

// RunScenarios checks every assertion with OpenFGA. It returns an error only if OpenFGA cannot be reached or rejects the model.
func RunScenarios(ctx context.Context, s CompiledPolicy, scenarios []Scenario) (Result, error) {
	server, err := embedded.StartOpenFGA(embedded.OpenFGAConfig{MaxTypes: max(len(s.Model.GetTypeDefinitions()), 1), MaxModelBytes: MaxBytes})
	if err != nil {
		return Result{}, err
	}
	defer server.Stop()
	client, err := fga.Dial(fga.Config{Target: server.GRPCTarget()})
	if err != nil {
		return Result{}, err
	}
	defer client.Close()
	result := Result{Failures: []Failure{}}
	for i, scenario := range scenarios {
		t := &scenarioRun{CompiledPolicy: s, Scenario: scenario, client: client, result: &result}
		if err := t.runScenario(ctx, fmt.Sprintf("scenario-%d", i)); err != nil {
			return result, fmt.Errorf("%s: %w", scenario.File, err)
		}
	}
	return result, nil
}

// scenarioRun is one scenario with its own store.
type scenarioRun struct {
	CompiledPolicy
	Scenario
	client         *fga.Client
	result         *Result
	store, modelID string
	world          *explainer
}

func (t *scenarioRun) runScenario(ctx context.Context, name string) (err error) {
	if t.store, err = t.client.CreateStore(ctx, name); err != nil {
		return err
	}
	if t.modelID, err = t.client.WriteModel(ctx, t.store, t.Model); err != nil {
		return err
	}
	var tuples []tuple
	for _, line := range t.Tuples {
		relation, err := line.parseTuple()
		if err == nil {
			err = t.writeTuple(ctx, relation)
		}
		if err != nil {
			t.addFailure(line, err.Error())
			continue
		}
		tuples = append(tuples, relation)
	}
	t.world = newExplainer(t.Policy, tuples)
	for want, lines := range map[bool][]NumberedLine{true: t.Allow, false: t.Deny} {
		for _, line := range lines {
			if err := t.checkAssertion(ctx, line, want); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(t.result.Failures, func(a, b Failure) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Line - b.Line
	})
	return nil
}

func (t *scenarioRun) writeTuple(ctx context.Context, r tuple) error {
	return t.client.Write(ctx, t.store, t.modelID, []*openfgav1.TupleKey{{Object: r.object, Relation: r.relation, User: r.user}}, nil)
}

// checkAssertion checks one assertion and compares the answer.
func (t *scenarioRun) checkAssertion(ctx context.Context, line NumberedLine, want bool) error {
	q, err := line.parseAccessCheck()
	if err == nil {
		err = t.validateAccessCheck(q)
	}
	if err != nil {
		t.addFailure(line, err.Error())
		return nil
	}
	answer, err := t.client.Check(ctx, &openfgav1.CheckRequest{
		StoreId: t.store, AuthorizationModelId: t.modelID,
		TupleKey: &openfgav1.CheckRequestTupleKey{Object: q.object, Relation: q.action, User: q.subject},
	})
	switch {
	case fault.IsUnavailable(err) || ctx.Err() != nil:
		return fmt.Errorf("line %d: %w", line.Line, err)
	case err != nil: // For example too deep for OpenFGA: check the others.
		t.addFailure(line, fmt.Sprintf("OpenFGA does not answer whether %s may %s on %s: %v", q.subject, q.action, q.object, err))
	case answer.GetAllowed() == want:
		t.result.Passed++
	case want:
		t.addFailure(line, fmt.Sprintf("%s may not %s on %s, but is asserted to", q.subject, q.action, q.object), t.world.explainAnswer(q)...)
	default:
		t.addFailure(line, fmt.Sprintf("%s may %s on %s, but is asserted not to", q.subject, q.action, q.object), t.world.explainAnswer(q)...)
	}
	return nil
}

// validateAccessCheck rejects a question about a type or action that the policy lacks. A misspelled name would always be denied.
func (t *scenarioRun) validateAccessCheck(q accessCheck) error {
	kind := t.Policy.FindType(typeOfObject(q.object))
	if kind == nil {
		return fmt.Errorf("the policy has no type %q: it has %s", typeOfObject(q.object),
			joinNames(t.Policy.Types, func(x *policy.Type) string { return x.Name }))
	}
	if kind.FindBinding(q.action) == nil {
		return fmt.Errorf("type %s has no action %q: it has %s", kind.Name, q.action,
			joinNames(kind.Bindings, func(b *policy.Binding) string { return b.Action }))
	}
	return nil
}

func (t *scenarioRun) addFailure(line NumberedLine, message string, trail ...string) {
	t.result.Failures = append(t.result.Failures, Failure{File: t.File, Line: line.Line, Scenario: t.Name, Message: message, Trail: trail})
}

func joinNames[T any](list []T, name func(T) string) string {
	all := map[string]bool{}
	for _, item := range list {
		all[name(item)] = true
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(truncateLines(slices.Sorted(maps.Keys(all))), ", ")
}
