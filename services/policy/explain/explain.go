package explain

import "github.com/entail-dev/entail/services/policy"

const (
	// maxTrees bounds the size of an explanation, maxDepth its depth. Trees beyond the limits are marked as cut.
	maxTrees = 10_000
	maxDepth = 100
)

// Action explains an action on a type. If the policy does not bind the action to the type, the error suggests
// alternatives.
func Action(p *policy.Policy, typeName, action string) (*Tree, error) {
	t, err := lookup(p, typeName, action)
	if err != nil {
		return nil, err
	}
	e := explainer{policy: p, states: map[node]state{}, ungranted: map[node]bool{}}
	for _, g := range p.Ungranted {
		e.ungranted[node{g.Type, g.Binding.Action}] = true
	}
	return e.tree(t, action), nil
}

// node is an action on a type.
type node struct {
	t      *policy.Type
	action string
}

// state is the progress of a node's explanation.
type state uint8

const (
	unseen state = iota
	open
	done
)

type explainer struct {
	policy    *policy.Policy
	states    map[node]state
	ungranted map[node]bool
	// trees counts the trees so far; depth is the depth of the present one.
	trees, depth int
}

func (e *explainer) tree(t *policy.Type, action string) *Tree {
	e.trees++
	this, b := node{t, action}, t.Binding(action)
	tree := &Tree{Type: t.Name, Action: action, NeverGranted: e.ungranted[this]}
	if b == nil {
		return tree
	}
	if b.On != t.Name {
		tree.On = b.On
	}
	tree.Bound = origin(b.Source, b.At)
	if tree.Ending = e.ending(this); tree.Ending != "" {
		return tree
	}
	e.states[this] = open
	e.depth++
	e.ways(tree, t, b)
	e.depth--
	e.states[this] = done
	return tree
}

func (e *explainer) ways(tree *Tree, t *policy.Type, b *policy.Binding) {
	if b.RoleBinding {
		o := e.policy.Options
		tree.Role = &Role{Relation: o.RoleRelationOf(b.Action), Holder: o.RoleType + "#" + o.RoleRelation}
	}
	for _, s := range b.Steps {
		if e.isFull() {
			tree.Ending = Cut
			return
		}
		if r := t.Relation(s.Relation); r != nil {
			tree.Steps = append(tree.Steps, e.step(r, s.Action))
		}
	}
}

func (e *explainer) isFull() bool { return e.trees >= maxTrees }

func (e *explainer) ending(n node) Ending {
	switch {
	case e.states[n] == open:
		return Recursion
	case e.states[n] == done:
		return Above
	case e.depth == maxDepth:
		return Cut
	default:
		return ""
	}
}

func (e *explainer) step(r *policy.Relation, action string) Step {
	s := Step{Relation: r.Name, Action: action, Declared: origin(r.Source, r.At)}
	for i, target := range r.Targets {
		if e.isFull() {
			s.More = len(r.Targets) - i
			break
		}
		s.Targets = append(s.Targets, e.tree(target, action))
	}
	return s
}
