package query

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/nearest"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// maxListed bounds lists without pages.
const maxListed = 1000

// PreviewRules implements InferenceService.
func (s *Server) PreviewRules(ctx context.Context, r *inferencev1.PreviewRulesRequest) (*inferencev1.PreviewRulesResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	leave, err := s.previews.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	namespace := r.GetNamespace()
	before := s.cfg.State.RuleSet(namespace)
	rules, refused, err := s.rulesAfterChanges(namespace, before.Rules(), r.GetChanges())
	if err != nil {
		return nil, err
	}
	after := s.cfg.State.WithPausedRules(namespace, infer.NewRuleSet(namespace, rules, s.cfg.State.Policy), state.SourceCountChange{})
	delta := s.previewDelta(namespace, infer.Comparison{Before: before, After: after})
	delta.Refused = append(refused, delta.Refused...)
	return &inferencev1.PreviewRulesResponse{Preview: toPreviewMessage(delta), Revision: revision, Synced: true}, nil
}

// rulesAfterChanges returns the rules after the changes. Rules that the API server would reject are returned in refused
// instead.
func (s *Server) rulesAfterChanges(namespace string, before []infer.EvaluatedRule, changes []*inferencev1.RuleChange) (
	list []infer.Rule, refused []infer.EvaluatedRule, err error,
) {
	rules := map[string]infer.Rule{}
	for _, r := range before {
		rules[r.Name] = r.Rule
	}
	for _, c := range changes {
		was, known := rules[c.GetName()]
		switch {
		case c.GetRemove() && !known:
			known := slices.Collect(maps.Keys(rules))
			return nil, nil, rpc.NotFoundError("rule %q cannot be removed: it does not exist%s", c.GetName(), nearest.Hint(c.GetName(), "rules", known))
		case c.GetRemove():
			delete(rules, c.GetName())
			continue
		case c.GetParent() == nil || c.GetChild() == nil:
			return nil, nil, rpc.InvalidError("rule %q needs a parent and a child, or remove", c.GetName())
		case !known:
			was = infer.Rule{Name: c.GetName(), Created: time.Now()}
		}
		parent, flaw := infer.ParseRole(c.GetParent().GetKind(), c.GetParent().GetName())
		child, other := infer.ParseRole(c.GetChild().GetKind(), c.GetChild().GetName())
		was.Parent, was.Child, was.Flaw = parent, child, nil
		for _, err := range []error{flaw, other} {
			if err != nil {
				return nil, nil, rpc.InvalidError("rule %q: %s", c.GetName(), err)
			}
		}
		if r, is := s.cfg.State.Policy.FindRefusal(namespace, was); is {
			refused = append(refused, r)
			continue
		}
		rules[c.GetName()] = was
	}
	return slices.Collect(maps.Values(rules)), refused, nil
}

// PreviewBinding implements InferenceService.
func (s *Server) PreviewBinding(ctx context.Context, r *inferencev1.PreviewBindingRequest) (*inferencev1.PreviewBindingResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	change := infer.BindingChange{Before: s.cfg.State.Binding(r.GetNamespace(), r.GetName())}
	if change.Before != nil && (change.Before.IsGenerated() || change.Before.Deleting) {
		return nil, rpc.InvalidError("RoleBinding %q is generated or being deleted: preview a change of its source", r.GetName())
	}
	switch {
	case strings.Contains(r.GetName(), "/"): // The form in which answers name ClusterRoleBindings.
		return nil, rpc.InvalidError(
			"%q is not the name of a RoleBinding; ImpliedRoles apply only to RoleBindings: bind the role in each namespace", r.GetName())
	case r.GetRemove() && change.Before == nil:
		return nil, s.bindingNotFoundError(r.GetNamespace(), r.GetName())
	case !r.GetRemove() && r.GetRole() == nil:
		return nil, rpc.InvalidError("RoleBinding %q needs a role, or remove", r.GetName())
	case !r.GetRemove():
		change.After = requestedBinding(r, change.Before)
	}
	leave, err := s.previews.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	before := s.cfg.State.RuleSet(r.GetNamespace())
	load := state.SourceCountChange{}
	load.AddSource(change.Before, -1)
	load.AddSource(change.After, 1)
	after := s.cfg.State.WithPausedRules(r.GetNamespace(), before, load)
	delta := s.previewDelta(r.GetNamespace(), infer.Comparison{Before: before, After: after, Changes: []infer.BindingChange{change}})
	return &inferencev1.PreviewBindingResponse{Preview: toPreviewMessage(delta), Revision: revision, Synced: true}, nil
}

// requestedBinding returns the binding that a request describes. It keeps the metadata of before only if the role is the same,
// because a roleRef cannot change.
func requestedBinding(r *inferencev1.PreviewBindingRequest, before *infer.Binding) *infer.Binding {
	b := &infer.Binding{Namespace: r.GetNamespace(), Name: r.GetName(), Role: roleFromMessage(r.GetRole())}
	if before != nil && before.Role == b.Role {
		*b = *before
	}
	b.Subjects = nil
	for _, subject := range r.GetSubjects() {
		b.Subjects = append(b.Subjects, subjectFromMessage(subject, r.GetNamespace()))
	}
	return b
}

// previewDelta completes a comparison with the bindings of the namespace and computes it.
func (s *Server) previewDelta(namespace string, c infer.Comparison) infer.Delta {
	touched := c.After.ChangedRoles(c.Before)
	c.Others = s.cfg.State.ClusterRoleBindings()
	for _, b := range s.cfg.State.BindingsIn(namespace) {
		_, matters := slices.BinarySearchFunc(touched, b.Role, infer.Role.Compare)
		switch {
		case b.IsGenerated() || slices.ContainsFunc(c.Changes, func(change infer.BindingChange) bool { return change.Before == b }):
		case matters:
			c.Changes = append(c.Changes, infer.BindingChange{Before: b, After: b})
		default:
			c.Others = append(c.Others, b)
		}
	}
	c.Exists, c.Most = s.cfg.State.RoleExistsFunc(namespace), maxListed
	c.Occupant = func(name string) *infer.Binding {
		if b := s.cfg.State.Binding(namespace, name); b != nil && !b.IsGenerated() {
			return b
		}
		return nil
	}
	return infer.ComputeDelta(c)
}

func toPreviewMessage(d infer.Delta) *inferencev1.Preview {
	m := &inferencev1.Preview{
		Created: int64(d.Verbs[infer.Create]), Updated: int64(d.Verbs[infer.Update]), Deleted: int64(d.Verbs[infer.Delete]),
		Bindings: toMessagesThatFit(d.Bindings, maxList, toBindingChangeMessage), Inferences: toMessagesThatFit(d.Rows, maxList, toInferenceChangeMessage),
		Subjects:  toMessagesThatFit(d.Subjects, maxList, toSubjectChangeMessage),
		NewCycles: toMessagesThatFit(d.Begun, maxList, toCycleMessage), ResolvedCycles: toMessagesThatFit(d.Ended, maxList, toCycleMessage),
		Refusals: toMessagesThatFit(d.Refused, maxList, toRefusalMessage),
	}
	m.Writes = m.GetCreated() + m.GetUpdated() + m.GetDeleted() + int64(d.Statuses)
	m.Truncated = d.More ||
		len(m.GetBindings())+len(m.GetInferences())+len(m.GetSubjects()) < len(d.Bindings)+len(d.Rows)+len(d.Subjects) ||
		len(m.GetNewCycles())+len(m.GetResolvedCycles())+len(m.GetRefusals()) < len(d.Begun)+len(d.Ended)+len(d.Refused)
	return m
}

func toInferenceChangeMessage(r infer.ImpliedRolesChange) *inferencev1.InferenceChange {
	return &inferencev1.InferenceChange{
		Parent: toRoleMessage(r.Parent), Added: toRoleMessages(r.Added), AddedTotal: int64(len(r.Added)),
		Removed: toRoleMessages(r.Removed), RemovedTotal: int64(len(r.Removed)),
	}
}

func toSubjectChangeMessage(c infer.SubjectRolesChange) *inferencev1.SubjectChange {
	return &inferencev1.SubjectChange{
		Subject: toSubjectMessage(c.Subject), Gained: toRoleMessages(c.Gained), GainedTotal: int64(len(c.Gained)),
		Lost: toRoleMessages(c.Lost), LostTotal: int64(len(c.Lost)),
	}
}

func toCycleMessage(roles []infer.Role) *inferencev1.Cycle {
	return &inferencev1.Cycle{Roles: toRoleMessages(roles), RolesTotal: int64(len(roles))}
}

func toRefusalMessage(r infer.EvaluatedRule) *inferencev1.Refusal {
	return &inferencev1.Refusal{Name: r.Name, Reason: r.Reason, Message: strings.ToValidUTF8(r.Message, "")}
}
