package decision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

const folders = `model
  schema 1.1
type user
type folder
  relations
    define parent: [folder]
    define viewer: [user, user with high, folder#viewer] or viewer from parent
    define blocked: [user]
    define reader: viewer but not blocked
condition high(level: int) {
  level > 4
}
`

// outline returns the kinds and answers of a tree, such as "relation=yes(any=yes(...))".
func outline(s *Step) string {
	kind := []string{"relation", "any", "all", "but not", "direct", "from", "tuple"}[s.Kind]
	text := kind + "=" + []string{"no", "yes", "undecided"}[s.Answer]
	if s.Repeated {
		text += " repeated"
	}
	var children []string
	for _, c := range s.Children {
		children = append(children, outline(c))
	}
	if len(children) > 0 {
		text += "(" + strings.Join(children, " ") + ")"
	}
	return text
}

func TestExplainShowsEveryStep(t *testing.T) {
	types := typesOf(t, parseModel(t, folders))
	conditional := tuple("folder:1", "viewer", "user:anne")
	conditional.Condition = &openfgav1.RelationshipCondition{Name: "high"}
	level := &structpb.Struct{Fields: map[string]*structpb.Value{"level": structpb.NewNumberValue(5)}}
	for name, test := range map[string]struct {
		tuples   []*openfgav1.TupleKey
		relation string
		context  *structpb.Struct
		want     string
	}{
		"a tuple": {
			[]*openfgav1.TupleKey{tuple("folder:1", "viewer", "user:anne")},
			"viewer", nil,
			"relation=yes(any=yes(direct=yes(tuple=yes) from=no))",
		},
		"a condition that is met": {[]*openfgav1.TupleKey{conditional}, "viewer", level, "relation=yes(any=yes(direct=yes(tuple=yes) from=no))"},
		"a condition without its value": {
			[]*openfgav1.TupleKey{conditional}, "viewer", nil, "relation=undecided(any=undecided(direct=undecided(tuple=undecided) from=no))",
		},
		"an exclusion": {
			[]*openfgav1.TupleKey{tuple("folder:1", "viewer", "user:anne"), tuple("folder:1", "blocked", "user:anne")},
			"reader", nil,
			"relation=no(but not=no(relation=yes(any=yes(direct=yes(tuple=yes) from=no)) relation=yes(direct=yes(tuple=yes))))",
		},
		"a folder that is its own parent": {
			[]*openfgav1.TupleKey{tuple("folder:1", "parent", "folder:1")}, "viewer", nil, "relation=no(any=no(direct=no from=no(tuple=no(relation=no))))",
		},
		"two ways to one folder": {
			[]*openfgav1.TupleKey{
				tuple("folder:1", "viewer", "folder:2#viewer"), tuple("folder:1", "parent", "folder:2"), tuple("folder:2", "viewer", "user:anne"),
			},
			"viewer", nil,
			"relation=yes(any=yes(direct=yes(tuple=yes(relation=yes(any=yes(direct=yes(tuple=yes) from=no)))) from=yes(tuple=yes(relation=yes repeated))))",
		},
		"a tuple that the model no longer allows": {[]*openfgav1.TupleKey{tuple("folder:1", "viewer", "folder:2")}, "viewer", nil, "relation=no(any=no(direct=no from=no))"},
	} {
		tree, truncated := explain(t, types, tupleList{tuples: test.tuples}, Question{Object: "folder:1", Relation: test.relation, User: "user:anne", Context: test.context})
		if got := outline(tree); got != test.want || truncated {
			t.Errorf("%s: got %s, truncated %t, want %s", name, got, truncated, test.want)
		}
	}
}

// A part that was left out matters only where nothing else decides.
func TestExplainLeavesOutPartsOfLargeTrees(t *testing.T) {
	types := typesOf(t, parseModel(t, folders))
	var chain, wide []*openfgav1.TupleKey
	for i := range 3 * maxDepth {
		chain = append(chain, tuple(fmt.Sprint("folder:", i), "parent", fmt.Sprint("folder:", i+1)))
		wide = append(wide, tuple("folder:0", "viewer", fmt.Sprintf("folder:x%d#viewer", i)))
	}
	direct := tuple("folder:0", "viewer", "user:anne")
	for name, test := range map[string]struct {
		reader tupleList
		want   Answer
	}{
		"a long chain":              {tupleList{tuples: chain}, Undecided},
		"a long chain, not needed":  {tupleList{tuples: append(chain, direct)}, Yes},
		"many usersets":             {tupleList{tuples: wide}, Undecided},
		"a relation that is cut":    {tupleList{tuples: wide[:20], most: 10}, Undecided},
		"a cut that is not needed":  {tupleList{tuples: append(wide[:20:20], direct), most: 10}, Yes},
		"all usersets of a few are": {tupleList{tuples: wide[:5]}, No},
	} {
		tree, truncated := explain(t, types, test.reader, Question{Object: "folder:0", Relation: "viewer", User: "user:anne"})
		if tree.Answer != test.want || truncated != (name != "all usersets of a few are") {
			t.Errorf("%s: got %v, truncated %t, want %v", name, tree.Answer, truncated, test.want)
		}
	}
}

// countingReader is a reader that counts its reads and tuples.
type countingReader struct {
	Reader
	reads, tuples *int
}

func (c countingReader) ReadRelation(ctx context.Context, object, relation, user string) ([]*openfgav1.TupleKey, bool, error) {
	found, more, err := c.Reader.ReadRelation(ctx, object, relation, user)
	*c.reads++
	*c.tuples += len(found)
	return found, more, err
}

// countSteps returns the number of steps in a tree.
func countSteps(s *Step) int {
	n := 1
	for _, c := range s.Children {
		n += countSteps(c)
	}
	return n
}

// wideModel returns a model whose relation doc#all is a union of n parts. define is the definition of the relations r0 to r(n-1).
func wideModel(n int, define, first, part string) string {
	text, all := "model\n  schema 1.1\ntype user\ntype bot\ntype group\n  relations\n    define member: [user]\ntype doc\n  relations\n", first
	if strings.Contains(first, "parent") {
		text += "    define parent: [doc]\n"
	}
	for i := range n {
		text += fmt.Sprintf("    define r%d: %s\n", i, define)
		all += " or " + fmt.Sprintf(part, i)
	}
	return text + "    define all: " + all + "\n"
}

// The size of one definition multiplies with the objects that have it.
func TestExplainBoundsTreesOfWideDefinitions(t *testing.T) {
	var parents, members []*openfgav1.TupleKey
	for i := range maxNodes / 200 {
		parents = append(parents, tuple("doc:0", "parent", fmt.Sprint("doc:x", i)))
	}
	for i := range 1000 {
		members = append(members, tuple("doc:0", "member", fmt.Sprint("user:x", i)))
	}
	for name, test := range map[string]struct {
		model  string
		reader Reader
	}{
		"steps":  {wideModel(400, "[bot]", "[user] or all from parent", "r%d"), tupleList{tuples: parents}},
		"reads":  {wideModel(2*maxReads, "[group]", "[user]", "member from r%d"), tupleList{}},
		"tuples": {wideModel(2*maxTuples/len(members), "[user, group#member]", "[user]", "r%d"), sameTuples(members)},
	} {
		var reads, tuples int
		tree, truncated := explain(t, typesOf(t, parseModel(t, test.model)), countingReader{test.reader, &reads, &tuples}, Question{
			Object: "doc:0", Relation: "all", User: "user:anne",
		})
		steps := countSteps(tree)
		if tree.Answer != Undecided || !truncated || reads > maxReads || tuples > maxTuples || steps > maxNodes+maxDepth {
			t.Errorf("%s: got %v, truncated %t, after %d reads of %d tuples, in %d steps", name, tree.Answer, truncated, reads, tuples, steps)
		}
	}
}

// sameTuples is a reader that returns the same tuples for every relation.
type sameTuples []*openfgav1.TupleKey

func (s sameTuples) ReadRelation(_ context.Context, _, _, user string) ([]*openfgav1.TupleKey, bool, error) {
	if user != "" {
		return nil, false, nil
	}
	return s, false, nil
}

func TestExplainEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	types := typesOf(t, parseModel(t, folders))
	if _, _, err := Explain(ctx, types, tupleList{}, Question{Object: "folder:1", Relation: "reader", User: "user:anne"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// failingReader is a reader that fails.
type failingReader struct{ err error }

func (b failingReader) ReadRelation(context.Context, string, string, string) ([]*openfgav1.TupleKey, bool, error) {
	return nil, false, b.err
}

func TestExplainReturnsErrorsOfReader(t *testing.T) {
	broken := errors.New("the line is cut")
	types := typesOf(t, parseModel(t, folders))
	if _, _, err := Explain(t.Context(), types, failingReader{broken}, Question{Object: "folder:1", Relation: "reader", User: "user:anne"}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
