package conformance

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/spicedb"
)

// asked is the number of generated policies in the test; `go test -run TestTheEngines -policies 5000` raises it.
//
//nolint:gochecknoglobals // It is how the testing package takes flags.
var asked = flag.Uint64("policies", 60, "generated policies that the engines are asked about")

const questionsOfPolicy = 20

// answerCounts counts the answers of an engine, the answers with deep or cyclic relationships, and the questions that
// it gave up.
type answerCounts struct{ yes, no, deep, givenUp int }

// TestTheEnginesEqualDocumentsOnRandomTuples compares both engines with the documents, on random relationships.
func TestTheEnginesEqualDocumentsOnRandomTuples(t *testing.T) {
	client := openFGA(t)
	tallies := map[string]*answerCounts{"SpiceDB": {}, "OpenFGA": {}}
	for seed := range policytest.SeedRange(t, *asked) {
		texts := policytest.GeneratePolicy(seed)
		p := valid(t, policy.Options{}, texts...)
		random := rand.New(rand.NewPCG(seed, 1))
		w := readPlainPolicy(t, texts).randomWorld(random)
		questions := w.questions(random, questionsOfPolicy)
		engines := map[string]engine{}
		if schema, found := spicedb.CompileSchema(p, spicedb.Options{}); !found.HasErrors() {
			engines["SpiceDB"] = newSpiceDB(t, schema)
		}
		if !openfga.CheckModel(p, openfga.Options{}).HasErrors() {
			engines["OpenFGA"] = newOpenFGA(t, client, modelOf(t, p, formOf(seed)))
		}
		for name, e := range engines {
			if err := e.write(t.Context(), w.facts...); err != nil {
				t.Error(err)
			}
			tallies[name].ask(t, w, e, questions)
			if t.Failed() {
				t.Fatalf("%s says so of the policy of seed %d:\n%s\n%v", name, seed, strings.Join(texts, ""), w.facts)
			}
		}
	}
	for name, of := range tallies {
		t.Logf("%s: %+v", name, *of)
		if least := int(*asked); of.yes < 3*least || of.no < 4*least || of.deep < least/2 || of.givenUp > of.no/5 {
			t.Errorf("%s was not asked enough: %+v", name, *of)
		}
	}
}

// formOf seldom returns a form that needs a parser. Parsers are slow, and other tests compare the forms.
func formOf(seed uint64) string {
	if seed%8 == 0 {
		return forms()[1+seed/8%2]
	}
	return forms()[0]
}

// ask compares answers with the documents. An engine may give up only on deep relationships.
func (of *answerCounts) ask(t *testing.T, w plainPolicyWithTuples, e engine, questions []decision) {
	t.Helper()
	const deep = 8
	for _, q := range questions {
		answer, err := e.allowed(t.Context(), q.relationshipTuple)
		isDeep := w.depth(typeAndName{q.Object, q.Relation}, deep) == deep
		switch {
		case err != nil && isDeep && tooDeep(err):
			of.givenUp++
			continue
		case err != nil || answer != q.Allowed:
			t.Errorf("%v: %v, want %v (%v)", q.relationshipTuple, answer, q.Allowed, err)
		case answer:
			of.yes++
		default:
			of.no++
		}
		if isDeep {
			of.deep++
		}
	}
}

// tooDeep reports whether an engine gave up because of depth.
func tooDeep(err error) bool {
	return strings.Contains(err.Error(), "max depth") || strings.Contains(err.Error(), "too complex")
}

// depth returns the number of steps from an action on an object, at most most.
func (w plainPolicyWithTuples) depth(p typeAndName, most int) int {
	deepest := 0
	for _, n := range w.next[p] {
		if deepest < most {
			deepest = max(deepest, 1+w.depth(n, most-1))
		}
	}
	return deepest
}
