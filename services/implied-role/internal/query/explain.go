package query

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// defaultPaths is how many reasons are given unless more are asked for.
const defaultPaths = 10

func limit(asked int32) int { return cmp.Or(int(asked), defaultPaths) }

// ExplainRole implements InferenceService.
func (s *Server) ExplainRole(_ context.Context, r *inferencev1.ExplainRoleRequest) (*inferencev1.ExplainRoleResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	namespace, role := r.GetNamespace(), roleOf(r.GetRole())
	book, _ := s.Scene.Rulebook(namespace)
	who := infer.Identify(subjectOf(r.GetSubject(), namespace), r.GetGroups())
	reasons, more := book.Explain(who, role, s.granting(namespace, role, book), limit(r.GetMaxPaths()))
	response := &inferencev1.ExplainRoleResponse{Held: len(reasons) > 0, Revision: revision, Synced: true}
	response.Reasons = fit(reasons, maxAnswer, func(r infer.Reason) *inferencev1.Reason { return s.reason(r, role, book) })
	response.Truncated = more || len(response.GetReasons()) < len(reasons)
	return response, nil
}

// granting lists the bindings that people made to a role or to one that implies it.
func (s *Server) granting(namespace string, role infer.Role, book *infer.Rulebook) []*infer.Binding {
	list := s.Scene.With(namespace, role)
	for _, parent := range book.Implying(role) {
		list = append(list, s.Scene.With(namespace, parent)...)
	}
	return list
}

func (s *Server) reason(r infer.Reason, role infer.Role, book *infer.Rulebook) *inferencev1.Reason {
	m := &inferencev1.Reason{
		Binding: r.Source.Name, Role: roleMessage(r.Source.Role), Subject: subjectMessage(r.Subject),
		State: inferencev1.BindingState_BINDING_STATE_EXPLICIT,
	}
	m.Path, m.Truncated = steps(r.Path, book)
	if len(r.Path) > 1 {
		m.GeneratedBinding = infer.Name(r.Source.Name, role)
		m.State = state(s.verbs(r.Source.Namespace, r.Source.Name, book)[m.GetGeneratedBinding()])
	}
	return m
}

// verbs is what is to be done about the bindings that follow from a source, by name.
func (s *Server) verbs(namespace, source string, book *infer.Rulebook) map[string]infer.Verb {
	verbs := map[string]infer.Verb{}
	for _, step := range book.Plan(s.Scene.Stock(namespace, source)) {
		verbs[step.Name] = step.Verb
	}
	return verbs
}

// ExplainBinding implements InferenceService.
func (s *Server) ExplainBinding(_ context.Context, r *inferencev1.ExplainBindingRequest) (*inferencev1.ExplainBindingResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	binding := s.Scene.Binding(r.GetNamespace(), r.GetName())
	if binding == nil {
		return nil, rpc.NotFound("there is no RoleBinding %q in namespace %q", r.GetName(), r.GetNamespace())
	}
	book, _ := s.Scene.Rulebook(r.GetNamespace())
	response := &inferencev1.ExplainBindingResponse{
		Name: binding.Name, Role: roleMessage(binding.Role), Subjects: subjectMessages(binding.Subjects),
		SubjectsTotal: int64(len(binding.Subjects)),
		State:         inferencev1.BindingState_BINDING_STATE_EXPLICIT, Revision: revision, Synced: true,
	}
	if binding.Generated() {
		response.Generated, response.Source = true, binding.Source
		s.explainGenerated(response, binding, book, limit(r.GetMaxPaths()))
	} else {
		s.explainSource(response, binding, book, limit(r.GetMaxPaths()))
	}
	return response, nil
}

// explainGenerated tells why a generated binding is there.
func (s *Server) explainGenerated(m *inferencev1.ExplainBindingResponse, b *infer.Binding, book *infer.Rulebook, limit int) {
	m.State = state(s.verbs(b.Namespace, m.GetSource(), book)[b.Name])
	source, role := s.Scene.Binding(b.Namespace, m.GetSource()), b.Role
	if source == nil || !source.IsSource() {
		return
	}
	paths, more := book.Paths(source.Role, role, limit)
	m.Reasons = fit(paths, maxAnswer, func(path []infer.Role) *inferencev1.Reason {
		return s.reason(infer.Reason{Source: source, Path: path}, role, book)
	})
	m.Truncated = more || len(m.GetReasons()) < len(paths)
}

// explainSource tells what follows from a binding.
func (s *Server) explainSource(m *inferencev1.ExplainBindingResponse, b *infer.Binding, book *infer.Rulebook, limit int) {
	wanted, verbs := book.Wanted(b), s.verbs(b.Namespace, b.Name, book)
	m.Implied = fit(wanted[:min(limit, len(wanted))], maxAnswer, func(w infer.Wanted) *inferencev1.ImpliedBinding {
		path := book.Path(b.Role, w.Child)
		implied := &inferencev1.ImpliedBinding{
			Name: w.Name, Source: b.Name, Role: roleMessage(w.Child), State: state(verbs[w.Name]), Path: roleMessages(path),
		}
		implied.Truncated = len(implied.GetPath()) < len(path)
		switch verbs[w.Name] {
		case infer.Conflict:
			implied.Message = "another RoleBinding has its name: delete or rename that one"
		case infer.Hold:
			implied.Message = "the rules behind it ask for too many RoleBindings"
		default:
		}
		return implied
	})
	m.Truncated = len(m.GetImplied()) < len(wanted)
}

// WhoHasRole implements InferenceService.
func (s *Server) WhoHasRole(_ context.Context, r *inferencev1.WhoHasRoleRequest) (*inferencev1.WhoHasRoleResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	role := roleOf(r.GetRole())
	book, _ := s.Scene.Rulebook(r.GetNamespace())
	holders := book.Holders(role, s.granting(r.GetNamespace(), role, book))
	slices.SortFunc(holders, func(a, b infer.Holding) int { return strings.Compare(holderKey(a), holderKey(b)) })
	page, next, err := pageOf(holders, holderKey, r, func(h infer.Holding) *inferencev1.Holder {
		return &inferencev1.Holder{
			Subject: subjectMessage(h.Subject), Origin: origin(h), Bindings: names(h.Bindings), BindingsTotal: int64(len(h.Bindings)),
		}
	})
	if err != nil {
		return nil, err
	}
	return &inferencev1.WhoHasRoleResponse{Holders: page, NextPageToken: next, Revision: revision, Synced: true}, nil
}

// maxKey is how much of a subject's name a page token holds; Kubernetes does not bound it.
const maxKey = 256

// holderKey sorts holders, and differs for each.
func holderKey(h infer.Holding) string {
	name := h.Subject.Name
	if len(name) > maxKey {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxKey] + string(sum[:])
	}
	return key(h.Subject.Kind, h.Subject.Namespace, name, h.Subject.APIGroup)
}

// ListEffectiveRoles implements InferenceService.
func (s *Server) ListEffectiveRoles(
	_ context.Context, r *inferencev1.ListEffectiveRolesRequest,
) (*inferencev1.ListEffectiveRolesResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	book, _ := s.Scene.Rulebook(r.GetNamespace())
	who := infer.Identify(subjectOf(r.GetSubject(), r.GetNamespace()), r.GetGroups())
	roles := book.Effective(who, s.Scene.BindingsIn(r.GetNamespace()))
	response := &inferencev1.ListEffectiveRolesResponse{Total: int64(len(roles)), Revision: revision, Synced: true}
	response.Roles = fit(roles, maxAnswer, func(h infer.Holding) *inferencev1.EffectiveRole {
		return &inferencev1.EffectiveRole{
			Role: roleMessage(h.Role), Origin: origin(h), Bindings: names(h.Bindings), BindingsTotal: int64(len(h.Bindings)),
		}
	})
	response.Truncated = len(response.GetRoles()) < len(roles)
	return response, nil
}
