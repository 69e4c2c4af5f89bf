package query

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
)

// defaultPaths bounds the reasons of an answer if the request sets no limit.
const defaultPaths = 10

func clampPathLimit(asked int32) int { return cmp.Or(int(asked), defaultPaths) }

// ExplainRole implements InferenceService.
func (s *Server) ExplainRole(ctx context.Context, r *inferencev1.ExplainRoleRequest) (*inferencev1.ExplainRoleResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	namespace, role := r.GetNamespace(), roleFromMessage(r.GetRole())
	missing, err := s.checkRole(ctx, namespace, role)
	if err != nil {
		return nil, err
	}
	ruleSet, subject := s.cfg.State.RuleSet(namespace), subjectFromMessage(r.GetSubject(), namespace)
	who := infer.NewIdentity(subject, r.GetGroups())
	reasons, more := ruleSet.ExplainRole(who, role, s.grantingBindings(namespace, role, ruleSet), clampPathLimit(r.GetMaxPaths()))
	if len(reasons) == 0 {
		if missing {
			return nil, s.roleNotFoundError(ctx, namespace, role)
		}
		if err := s.checkSubject(ctx, namespace, subject, r.GetGroups()); err != nil {
			return nil, err
		}
	}
	response := &inferencev1.ExplainRoleResponse{
		Held: len(reasons) > 0, Revision: revision, Synced: true, RoleMissing: missing, Considered: s.countConsidered(namespace),
	}
	response.Reasons = toMessagesThatFit(reasons, maxAnswer, func(r infer.RoleReason) *inferencev1.Reason { return s.toReasonMessage(r, role, ruleSet) })
	response.Truncated = more || len(response.GetReasons()) < len(reasons)
	return response, nil
}

// grantingBindings lists all bindings to a role, and the explicit bindings to a role that implies it.
func (s *Server) grantingBindings(namespace string, role infer.Role, ruleSet *infer.RuleSet) []*infer.Binding {
	list := slices.Concat(s.cfg.State.ExplicitBindingsTo(namespace, role), s.cfg.State.GeneratedBindingsTo(namespace, role),
		s.cfg.State.ClusterRoleBindingsTo(role))
	for _, parent := range ruleSet.ImplyingRoles(role) {
		list = append(list, s.cfg.State.ExplicitBindingsTo(namespace, parent)...)
	}
	return list
}

func (s *Server) toReasonMessage(r infer.RoleReason, role infer.Role, ruleSet *infer.RuleSet) *inferencev1.Reason {
	m := &inferencev1.Reason{
		Binding: r.Source.String(), Role: toRoleMessage(r.Source.Role), Subject: toSubjectMessage(r.Subject),
		State: inferencev1.BindingState_BINDING_STATE_EXPLICIT,
	}
	if r.Source.IsGenerated() {
		m.State = inferencev1.BindingState_BINDING_STATE_PENDING // It will be removed.
	}
	m.Path, m.Truncated = stepsThatFit(r.Path, ruleSet)
	if len(r.Path) > 1 {
		m.GeneratedBinding = infer.GeneratedName(r.Source.Name, role)
		m.State = s.pendingDifferencesOf(r.Source.Namespace, r.Source.Name, ruleSet).bindingState(m.GetGeneratedBinding())
	}
	return m
}

// pendingDifferences holds the differences that remain for the bindings of one source, by name.
type pendingDifferences map[string]infer.BindingDifference

func (s *Server) pendingDifferencesOf(namespace, source string, ruleSet *infer.RuleSet) pendingDifferences {
	left := pendingDifferences{}
	for _, change := range ruleSet.PlanSource(s.cfg.State.PlanInput(namespace, source)).Differences() {
		left[change.Name] = change
	}
	return left
}

// bindingState returns the state of a binding.
func (p pendingDifferences) bindingState(name string) inferencev1.BindingState {
	change, left := p[name]
	switch {
	case !left:
		return inferencev1.BindingState_BINDING_STATE_SYNCED
	case change.Obstacle == infer.NameConflict:
		return inferencev1.BindingState_BINDING_STATE_CONFLICT
	}
	return inferencev1.BindingState_BINDING_STATE_PENDING
}

// ExplainBinding implements InferenceService.
func (s *Server) ExplainBinding(ctx context.Context, r *inferencev1.ExplainBindingRequest) (*inferencev1.ExplainBindingResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	binding := s.cfg.State.Binding(r.GetNamespace(), r.GetName())
	if binding == nil {
		return nil, s.bindingNotFoundError(r.GetNamespace(), r.GetName())
	}
	ruleSet := s.cfg.State.RuleSet(r.GetNamespace())
	response := &inferencev1.ExplainBindingResponse{
		Name: binding.Name, Role: toRoleMessage(binding.Role), Subjects: toSubjectMessages(binding.Subjects),
		SubjectsTotal: int64(len(binding.Subjects)),
		State:         inferencev1.BindingState_BINDING_STATE_EXPLICIT, Revision: revision, Synced: true,
	}
	if binding.IsGenerated() {
		response.Generated, response.Source = true, binding.Source
		s.explainGenerated(response, binding, ruleSet, clampPathLimit(r.GetMaxPaths()))
	} else {
		s.explainSource(response, binding, ruleSet, clampPathLimit(r.GetMaxPaths()))
	}
	return response, nil
}

// explainGenerated adds the reasons for which a generated binding exists.
func (s *Server) explainGenerated(m *inferencev1.ExplainBindingResponse, b *infer.Binding, ruleSet *infer.RuleSet, limit int) {
	m.State = s.pendingDifferencesOf(b.Namespace, state.SourceName(b), ruleSet).bindingState(b.Name)
	source, role := s.cfg.State.Binding(b.Namespace, m.GetSource()), b.Role
	if source == nil || !source.IsSource() {
		return
	}
	paths, more := ruleSet.PathsBetween(source.Role, role, limit)
	m.Reasons = toMessagesThatFit(paths, maxAnswer, func(path []infer.Role) *inferencev1.Reason {
		return s.toReasonMessage(infer.RoleReason{Source: source, Path: path}, role, ruleSet)
	})
	m.Truncated = more || len(m.GetReasons()) < len(paths)
}

// explainSource adds the bindings that follow from an explicit binding.
func (s *Server) explainSource(m *inferencev1.ExplainBindingResponse, b *infer.Binding, ruleSet *infer.RuleSet, limit int) {
	desired, left := ruleSet.DesiredBindings(b), s.pendingDifferencesOf(b.Namespace, b.Name, ruleSet)
	m.Implied = toMessagesThatFit(desired[:min(limit, len(desired))], maxAnswer, func(d infer.DesiredBinding) *inferencev1.ImpliedBinding {
		path := ruleSet.ShortestPath(b.Role, d.Child)
		implied := &inferencev1.ImpliedBinding{
			Name: d.Name, Source: b.Name, Role: toRoleMessage(d.Child), State: left.bindingState(d.Name), Path: toRoleMessages(path),
		}
		implied.Truncated = len(implied.GetPath()) < len(path)
		switch left[d.Name].Obstacle {
		case infer.NameConflict:
			implied.Message = "another RoleBinding has its name: delete or rename that one"
		case infer.TooManyBindings:
			implied.Message = "the rules behind it ask for too many RoleBindings"
		default:
		}
		return implied
	})
	m.Truncated = len(m.GetImplied()) < len(desired)
}

// WhoHasRole implements InferenceService.
func (s *Server) WhoHasRole(ctx context.Context, r *inferencev1.WhoHasRoleRequest) (*inferencev1.WhoHasRoleResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	role := roleFromMessage(r.GetRole())
	missing, err := s.checkRole(ctx, r.GetNamespace(), role)
	if err != nil {
		return nil, err
	}
	ruleSet := s.cfg.State.RuleSet(r.GetNamespace())
	holders := ruleSet.Holders(role, s.grantingBindings(r.GetNamespace(), role, ruleSet))
	if missing && len(holders) == 0 {
		return nil, s.roleNotFoundError(ctx, r.GetNamespace(), role)
	}
	slices.SortFunc(holders, func(a, b infer.RoleHolding) int { return strings.Compare(holderKey(a), holderKey(b)) })
	page, next, err := pageThatFits(holders, holderKey, r, func(h infer.RoleHolding) *inferencev1.Holder {
		return &inferencev1.Holder{
			Subject: toSubjectMessage(h.Subject), Origin: holdingOrigin(h), Bindings: namesThatFit(h.Bindings), BindingsTotal: int64(len(h.Bindings)),
		}
	})
	if err != nil {
		return nil, err
	}
	return &inferencev1.WhoHasRoleResponse{
		Holders: page, NextPageToken: next, Revision: revision, Synced: true, RoleMissing: missing, Considered: s.countConsidered(r.GetNamespace()),
	}, nil
}

// maxKey bounds the part of a subject's name in a page token. Kubernetes does not bound the name.
const maxKey = 256

// holderKey returns a sort key that is unique per holder. Names longer than maxKey end in a hash.
func holderKey(h infer.RoleHolding) string {
	name := h.Subject.Name
	if len(name) > maxKey {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxKey] + string(sum[:])
	}
	return joinKey(h.Subject.Kind, h.Subject.Namespace, name, h.Subject.APIGroup)
}

// ListEffectiveRoles implements InferenceService.
func (s *Server) ListEffectiveRoles(
	ctx context.Context, r *inferencev1.ListEffectiveRolesRequest,
) (*inferencev1.ListEffectiveRolesResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	ruleSet := s.cfg.State.RuleSet(r.GetNamespace())
	subject := subjectFromMessage(r.GetSubject(), r.GetNamespace())
	who := infer.NewIdentity(subject, r.GetGroups())
	roles := ruleSet.EffectiveRoles(who, append(s.cfg.State.BindingsIn(r.GetNamespace()), s.cfg.State.ClusterRoleBindings()...))
	if len(roles) == 0 {
		if err := s.checkSubject(ctx, r.GetNamespace(), subject, r.GetGroups()); err != nil {
			return nil, err
		}
	}
	response := &inferencev1.ListEffectiveRolesResponse{
		Total: int64(len(roles)), Revision: revision, Synced: true,
		SubjectUnnamed: s.isSubjectUnnamed(subject), Considered: s.countConsidered(r.GetNamespace()),
	}
	response.Roles = toMessagesThatFit(roles, maxAnswer, func(h infer.RoleHolding) *inferencev1.EffectiveRole {
		return &inferencev1.EffectiveRole{
			Role: toRoleMessage(h.Role), Origin: holdingOrigin(h), Bindings: namesThatFit(h.Bindings), BindingsTotal: int64(len(h.Bindings)),
		}
	})
	response.Truncated = len(response.GetRoles()) < len(roles)
	return response, nil
}
