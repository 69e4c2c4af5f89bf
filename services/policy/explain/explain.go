package explain

import "github.com/entail-dev/entail/services/policy"

const (
	// maxTrees bounds the size of an explanation, maxDepth its depth. Trees beyond the limits are marked as cut.
	maxTrees = 10_000
	maxDepth = 100
)

// Action explains an action on a type. If the policy does not bind the action to the type, the error suggests
// alternatives.
func Action(p *policy.Policy, typeName, action string) (*ActionTree, error) {
	t, err := findBoundType(p, typeName, action)
	if err != nil {
		return nil, err
	}
	e := explainer{policy: p, states: map[actionOnType]explainState{}, ungranted: map[actionOnType]bool{}}
	for _, g := range p.Ungranted {
		e.ungranted[actionOnType{g.Type, g.Binding.Action}] = true
	}
	return e.buildTree(t, action), nil
}

// actionOnType is an action on a type.
type actionOnType struct {
	t      *policy.Type
	action string
}

// explainState is the progress of a node's explanation.
type explainState uint8

const (
	unseen explainState = iota
	open
	done
)

type explainer struct {
	policy    *policy.Policy
	states    map[actionOnType]explainState
	ungranted map[actionOnType]bool
	// trees counts the trees so far; depth is the depth of the present one.
	trees, depth int
}

func (e *explainer) buildTree(t *policy.Type, action string) *ActionTree {
	e.trees++
	this, b := actionOnType{t, action}, t.FindBinding(action)
	tree := &ActionTree{Type: t.Name, Action: action, NeverGranted: e.ungranted[this]}
	if b == nil {
		return tree
	}
	if b.On != t.Name {
		tree.On = b.On
	}
	tree.Bound = newOrigin(b.Source, b.At)
	if tree.Ending = e.endingOf(this); tree.Ending != "" {
		return tree
	}
	e.states[this] = open
	e.depth++
	e.addGrantPaths(tree, t, b)
	e.depth--
	e.states[this] = done
	return tree
}

func (e *explainer) addGrantPaths(tree *ActionTree, t *policy.Type, b *policy.Binding) {
	if b.RoleBinding {
		o := e.policy.Options
		tree.Role = &RoleBindingWay{Relation: o.RoleRelationOf(b.Action), Holder: o.RoleType + "#" + o.RoleRelation}
	}
	for _, s := range b.Steps {
		if e.isFull() {
			tree.Ending = Cut
			return
		}
		if r := t.FindRelation(s.Relation); r != nil {
			tree.Steps = append(tree.Steps, e.buildRelationWay(r, s.Action))
		}
	}
}

func (e *explainer) isFull() bool { return e.trees >= maxTrees }

func (e *explainer) endingOf(n actionOnType) TreeEnding {
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

func (e *explainer) buildRelationWay(r *policy.Relation, action string) RelationWay {
	s := RelationWay{Relation: r.Name, Action: action, Declared: newOrigin(r.Source, r.At)}
	for i, target := range r.Targets {
		if e.isFull() {
			s.More = len(r.Targets) - i
			break
		}
		s.Targets = append(s.Targets, e.buildTree(target, action))
	}
	return s
}
