package report

import (
	"fmt"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/encoding/protojson"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

// WriteExpansion prints the tree of a relation, with the objects that declare its tuples.
func (p Printer) WriteExpansion(m *tuplev1.ExpandResponse) error {
	var tree openfgav1.UsersetTree
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(m.GetTreeJson()), &tree); err != nil {
		return fmt.Errorf("read the tree of OpenFGA: %w", err)
	}
	owners := map[string]string{}
	for _, t := range m.GetTuples() {
		var names []string
		for _, o := range t.GetOwners() {
			names = append(names, o.GetKind()+"/"+o.GetName())
		}
		owners[t.GetKey().GetUser()] = strings.Join(names, ", ")
	}
	e := expansion{owners: owners}
	e.addNode(tree.GetRoot(), tree.GetRoot().GetName(), "", "")
	p.writeTable([]string{"RELATION", "DECLARED BY"}, e.rows)
	return nil
}

// expansion collects the rows of a tree.
type expansion struct {
	// owners maps the users of direct tuples to the objects that declare them.
	owners map[string]string
	rows   []tableRow
}

// addNode adds a node and the nodes below it. lead precedes its text, and below the texts of its children.
func (e *expansion) addNode(n *openfgav1.UsersetTree_Node, text, lead, below string) {
	e.rows = append(e.rows, tableRow{cells: []string{lead + text, ""}})
	var texts []string
	var nodes []*openfgav1.UsersetTree_Node
	switch value := n.GetValue().(type) {
	case *openfgav1.UsersetTree_Node_Union:
		nodes = value.Union.GetNodes()
		texts = labelNodes(nodes, "or ")
	case *openfgav1.UsersetTree_Node_Intersection:
		nodes = value.Intersection.GetNodes()
		texts = labelNodes(nodes, "and ")
	case *openfgav1.UsersetTree_Node_Difference:
		nodes = []*openfgav1.UsersetTree_Node{value.Difference.GetBase(), value.Difference.GetSubtract()}
		texts = labelNodes(nodes, "but not ")
	case *openfgav1.UsersetTree_Node_Leaf:
		e.addLeaf(value.Leaf, below)
	}
	for i, node := range nodes {
		own, further := branchTexts(i, len(nodes))
		e.addNode(node, texts[i], below+own, below+further)
	}
}

// labelNodes returns the texts of the operands of an operator.
func labelNodes(nodes []*openfgav1.UsersetTree_Node, operator string) []string {
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		switch {
		case n.GetUnion() != nil, n.GetIntersection() != nil, n.GetDifference() != nil:
			texts[i] = "("
		case n.GetLeaf().GetComputed() != nil:
			texts[i] = "relation"
		case n.GetLeaf().GetTupleToUserset() != nil:
			texts[i] = "relation from " + n.GetLeaf().GetTupleToUserset().GetTupleset()
		default:
			texts[i] = "tuples"
		}
		if i > 0 {
			texts[i] = operator + texts[i]
		}
	}
	return texts
}

func (e *expansion) addLeaf(leaf *openfgav1.UsersetTree_Leaf, below string) {
	var texts, declared []string
	for _, user := range leaf.GetUsers().GetUsers() {
		owner := e.owners[user]
		if owner == "" {
			owner = "unmanaged"
		}
		texts, declared = append(texts, user), append(declared, owner)
	}
	if computed := leaf.GetComputed(); computed != nil {
		texts, declared = append(texts, computed.GetUserset()), append(declared, "")
	}
	for _, computed := range leaf.GetTupleToUserset().GetComputed() {
		texts, declared = append(texts, computed.GetUserset()), append(declared, "")
	}
	if len(texts) == 0 {
		texts, declared = []string{"none"}, []string{""}
	}
	for i, text := range texts {
		own, _ := branchTexts(i, len(texts))
		e.rows = append(e.rows, tableRow{cells: []string{below + own + text, declared[i]}})
	}
}
