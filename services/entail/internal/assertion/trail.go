package assertion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// maxTrail bounds the lines of an explanation.
const maxTrail = 20

// explainer is a policy with relationships.
type explainer struct {
	policy *policy.Policy
	// users holds the users by object#relation, in the order of the file.
	users map[string][]string
}

func newExplainer(p *policy.Policy, tuples []tuple) *explainer {
	w := &explainer{policy: p, users: map[string][]string{}}
	for _, t := range tuples {
		at := t.object + "#" + t.relation
		w.users[at] = append(w.users[at], t.user)
	}
	return w
}

// searchNode is an action on an object, with the place and relation that led to it.
type searchNode struct {
	object, action string
	from           *searchNode
	by             string
}

// explainAnswer returns the path by which the subject has the action, or the ends of all paths. It searches breadth first, so
// the path is a shortest one.
func (w *explainer) explainAnswer(q accessCheck) []string {
	queue := []*searchNode{{object: q.object, action: q.action}}
	seen := map[[2]string]bool{{q.object, q.action}: true}
	var ends []string
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		bound := w.actionBindingAt(at)
		if bound == nil {
			continue
		}
		granted, near := w.grantedRole(at, bound, q.subject)
		if granted != "" {
			return append(at.pathSteps(), granted)
		}
		ends = append(ends, near...)
		for _, step := range bound.Steps {
			next := w.users[at.object+"#"+step.Relation]
			if len(next) == 0 {
				ends = append(ends, fmt.Sprintf("%s: %s leads nowhere: there is no %s#%s@…", at.object, step.Relation, at.object, step.Relation))
			}
			for _, object := range next {
				if key := [2]string{object, step.Action}; !seen[key] {
					seen[key] = true
					queue = append(queue, &searchNode{object, step.Action, at, step.Relation})
				}
			}
		}
	}
	return truncateLines(ends)
}

func (w *explainer) actionBindingAt(at *searchNode) *policy.Binding {
	if t := w.policy.FindType(typeOfObject(at.object)); t != nil {
		return t.FindBinding(at.action)
	}
	return nil
}

// grantedRole returns the role that gives the action at this place, or the roles that lack only the membership.
func (w *explainer) grantedRole(at *searchNode, bound *policy.Binding, subject string) (yes string, near []string) {
	if !bound.RoleBinding {
		return "", nil
	}
	relation := w.policy.Options.RoleRelationOf(at.action)
	roles := w.users[at.object+"#"+relation]
	for _, userset := range roles {
		role, membership, _ := strings.Cut(userset, "#")
		if slices.Contains(w.users[role+"#"+membership], subject) {
			return fmt.Sprintf("%s: %s has %s, and %s is in it", at.object, role, at.action, subject), nil
		}
		near = append(near, fmt.Sprintf("%s: %s has %s, but %s#%s@%s is missing", at.object, role, at.action, role, membership, subject))
	}
	if len(roles) == 0 {
		near = append(near, fmt.Sprintf("%s: no role has %s: there is no %s#%s@…", at.object, at.action, at.object, relation))
	}
	return "", near
}

// pathSteps returns the steps from the first place to p.
func (p *searchNode) pathSteps() []string {
	if p.from == nil {
		return nil
	}
	return append(p.from.pathSteps(), fmt.Sprintf("%s: %s if %s of %s, its %s", p.from.object, p.from.action, p.action, p.object, p.by))
}

func truncateLines(lines []string) []string {
	if len(lines) <= maxTrail {
		return lines
	}
	return append(lines[:maxTrail:maxTrail], fmt.Sprintf("and %d more", len(lines)-maxTrail))
}
