// Package query answers InferenceService from the view: what rules imply, who has a role
// because of them, and what a change would do. It only maps; what follows from what is
// package infer's.
package query

import (
	"context"
	"slices"
	"strings"
	"time"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/scene"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Config is what answers are made of. All fields are required.
type Config struct {
	Scene *scene.Scene
	// Complete is nil when the view holds everything, Revision what it holds.
	Complete func() error
	Revision func() string
	// Finished is when a namespace was last as it must be; zero when that is not known here.
	Finished func(namespace string) time.Time
	Lister   Lister
	Hub      *Hub
}

// Server implements InferenceService.
type Server struct{ Config }

// NewServer makes one.
func NewServer(cfg Config) *Server { return &Server{cfg} }

var _ inferencev1connect.InferenceServiceHandler = (*Server)(nil)

// namespaced is a request about one namespace, or all.
type namespaced interface{ GetNamespace() string }

// Access asks of a caller what kubectl would: to list rules for what rules say, to list
// RoleBindings for who has what.
func Access() map[string]rpc.Access {
	return map[string]rpc.Access{
		inferencev1connect.InferenceServiceListRulesProcedure:          rules[inferencev1.ListRulesRequest](),
		inferencev1connect.InferenceServiceListInferencesProcedure:     rules[inferencev1.ListInferencesRequest](),
		inferencev1connect.InferenceServiceGetInferenceProcedure:       rules[inferencev1.GetInferenceRequest](),
		inferencev1connect.InferenceServiceListImplyingRolesProcedure:  rules[inferencev1.ListImplyingRolesRequest](),
		inferencev1connect.InferenceServiceWatchInferencesProcedure:    rules[inferencev1.WatchInferencesRequest](),
		inferencev1connect.InferenceServiceExplainRoleProcedure:        bindings[inferencev1.ExplainRoleRequest](),
		inferencev1connect.InferenceServiceExplainBindingProcedure:     bindings[inferencev1.ExplainBindingRequest](),
		inferencev1connect.InferenceServiceWhoHasRoleProcedure:         bindings[inferencev1.WhoHasRoleRequest](),
		inferencev1connect.InferenceServiceListEffectiveRolesProcedure: bindings[inferencev1.ListEffectiveRolesRequest](),
		inferencev1connect.InferenceServicePreviewRulesProcedure:       bindings[inferencev1.PreviewRulesRequest](),
		inferencev1connect.InferenceServicePreviewBindingProcedure:     bindings[inferencev1.PreviewBindingRequest](),
		inferencev1connect.InferenceServiceGetSyncStatusProcedure:      bindings[inferencev1.GetSyncStatusRequest](),
		inferencev1connect.InferenceServiceCheckDriftProcedure:         bindings[inferencev1.CheckDriftRequest](),
	}
}

func rules[M any]() rpc.Access {
	return rpc.CanIn("list", topology.ImpliedRoles().GroupResource, namespaceOf[M])
}

func bindings[M any]() rpc.Access {
	return rpc.CanIn("list", topology.RoleBindings().GroupResource, namespaceOf[M])
}

func namespaceOf[M any](m *M) string {
	request, _ := any(m).(namespaced)
	return request.GetNamespace()
}

// ready refuses to answer from a view that lacks something. The revision is taken before
// the answer: what it names is in it.
func (s *Server) ready() (revision string, err error) {
	return s.Revision(), rpc.Incomplete(s.Complete())
}

// in lists the namespace asked about, or all that have rules.
func (s *Server) in(namespace string) []string {
	if namespace != "" {
		return []string{namespace}
	}
	return s.Scene.Namespaces()
}

// ListRules implements InferenceService.
func (s *Server) ListRules(_ context.Context, r *inferencev1.ListRulesRequest) (*inferencev1.ListRulesResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	var all []*inferencev1.Rule
	for _, namespace := range s.in(r.GetNamespace()) {
		all = append(all, s.rulesOf(namespace)...)
	}
	page, next, err := rpc.Page(all, func(r *inferencev1.Rule) string { return key(r.GetNamespace(), r.GetName()) }, r.GetPageSize(), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	return &inferencev1.ListRulesResponse{Rules: page, NextPageToken: next, Revision: revision, Synced: true}, nil
}

func (s *Server) rulesOf(namespace string) []*inferencev1.Rule {
	book, objects := s.Scene.Rulebook(namespace)
	list := make([]*inferencev1.Rule, len(objects))
	for i, judged := range book.Rules() {
		list[i] = ruleMessage(book, judged, objects[i])
	}
	return list
}

// maxRoles is how many roles the rows of one page have together, but for a single row with more.
const maxRoles = 20_000

// ListInferences implements InferenceService.
func (s *Server) ListInferences(_ context.Context, r *inferencev1.ListInferencesRequest) (*inferencev1.ListInferencesResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	type row struct {
		namespace string
		parent    infer.Role
		book      *infer.Rulebook
	}
	var all []row
	for _, namespace := range s.in(r.GetNamespace()) {
		book, _ := s.Scene.Rulebook(namespace)
		for parent := range book.Parents() {
			if r.GetParent() == nil || parent == roleOf(r.GetParent()) {
				all = append(all, row{namespace, parent, book})
			}
		}
	}
	keyOf := func(r row) string { return key(r.namespace, roleKey(r.parent)) }
	page, next, err := rpc.Page(all, keyOf, r.GetPageSize(), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	fits, roles := 0, 0
	for ; fits < len(page); fits++ {
		if roles += page[fits].book.Count(page[fits].parent); roles > maxRoles && fits > 0 {
			break
		}
	}
	if fits < len(page) {
		if page, next, err = rpc.Page(all, keyOf, int32(fits), r.GetPageToken()); err != nil {
			return nil, err
		}
	}
	response := &inferencev1.ListInferencesResponse{NextPageToken: next, Revision: revision, Synced: true}
	for _, r := range page {
		response.Inferences = append(response.Inferences, inference(r.namespace, r.parent, r.book))
	}
	return response, nil
}

// GetInference implements InferenceService.
func (s *Server) GetInference(_ context.Context, r *inferencev1.GetInferenceRequest) (*inferencev1.GetInferenceResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	book, _ := s.Scene.Rulebook(r.GetNamespace())
	return &inferencev1.GetInferenceResponse{Inference: inference(r.GetNamespace(), roleOf(r.GetRole()), book), Revision: revision, Synced: true}, nil
}

// ListImplyingRoles implements InferenceService.
func (s *Server) ListImplyingRoles(_ context.Context, r *inferencev1.ListImplyingRolesRequest) (*inferencev1.ListImplyingRolesResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	book, _ := s.Scene.Rulebook(r.GetNamespace())
	role := roleOf(r.GetRole())
	response := &inferencev1.ListImplyingRolesResponse{Revision: revision, Synced: true}
	for _, parent := range book.Implying(role) {
		response.Roles = append(response.Roles, &inferencev1.ImplyingRole{
			Role: roleMessage(parent), Direct: slices.Contains(book.Direct(parent), role),
		})
	}
	return response, nil
}

// key joins parts such that sorting by it sorts by the parts.
func key(parts ...string) string { return strings.Join(parts, "\x00") }

func roleKey(r infer.Role) string {
	if r.Cluster {
		return key(r.Name, "1")
	}
	return key(r.Name, "0")
}
