// Package query serves InferenceService from the informer: the roles that rules imply, the holders of a role, and the
// effect of a planned change. It only converts requests and answers. Package infer computes the results.
package query

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Config holds the sources of answers. All fields are required.
type Config struct {
	State *state.State
	// Complete returns nil if the informer is complete. Revision returns the revision that the informer holds.
	Complete func() error
	Revision func() string
	// Await waits until the informer holds a revision, given as [topology.ParseRevision] returns it.
	Await func(ctx context.Context, sequence uint64, began time.Time) error
	// Finished returns the time at which a namespace was last in its desired state. It is zero if this process holds no
	// such time.
	Finished func(namespace string) time.Time
	Lister   LiveLister
	// NamespaceExists reports whether the API server has a namespace.
	NamespaceExists func(ctx context.Context, name string) (bool, error)
	// Since returns the time since which the webhooks check all authors. It is zero without webhooks.
	Since   func(ctx context.Context) time.Time
	Changes *WatchCache
}

// Server implements InferenceService.
type Server struct {
	cfg Config
	// checks and previews bound the costly calls in parallel.
	checks, previews *rpc.CallLimiter
}

// NewServer returns a server.
func NewServer(cfg Config) *Server {
	return &Server{cfg, rpc.NewCallLimiter(maxChecks), rpc.NewCallLimiter(maxPreviews)}
}

var _ inferencev1connect.InferenceServiceHandler = (*Server)(nil)

// namespacedRequest is a request about one namespace, or about all if the namespace is empty.
type namespacedRequest interface{ GetNamespace() string }

// RequiredAccess returns the permission that each procedure requires. Procedures about rules require "list" on rules, and
// procedures about holders "list" on RoleBindings.
func RequiredAccess() map[string]rpc.AccessRule {
	return map[string]rpc.AccessRule{
		inferencev1connect.InferenceServiceListRulesProcedure:          rulesListAccess[inferencev1.ListRulesRequest](),
		inferencev1connect.InferenceServiceListInferencesProcedure:     rulesListAccess[inferencev1.ListInferencesRequest](),
		inferencev1connect.InferenceServiceGetInferenceProcedure:       rulesListAccess[inferencev1.GetInferenceRequest](),
		inferencev1connect.InferenceServiceListImplyingRolesProcedure:  rulesListAccess[inferencev1.ListImplyingRolesRequest](),
		inferencev1connect.InferenceServiceWatchInferencesProcedure:    rulesListAccess[inferencev1.WatchInferencesRequest](),
		inferencev1connect.InferenceServiceExplainRoleProcedure:        bindingsListAccess[inferencev1.ExplainRoleRequest](),
		inferencev1connect.InferenceServiceExplainBindingProcedure:     bindingsListAccess[inferencev1.ExplainBindingRequest](),
		inferencev1connect.InferenceServiceWhoHasRoleProcedure:         bindingsListAccess[inferencev1.WhoHasRoleRequest](),
		inferencev1connect.InferenceServiceListEffectiveRolesProcedure: bindingsListAccess[inferencev1.ListEffectiveRolesRequest](),
		inferencev1connect.InferenceServicePreviewRulesProcedure:       bindingsListAccess[inferencev1.PreviewRulesRequest](),
		inferencev1connect.InferenceServicePreviewBindingProcedure:     bindingsListAccess[inferencev1.PreviewBindingRequest](),
		inferencev1connect.InferenceServiceGetSyncStatusProcedure:      bindingsListAccess[inferencev1.GetSyncStatusRequest](),
		inferencev1connect.InferenceServiceCheckDriftProcedure:         bindingsListAccess[inferencev1.CheckDriftRequest](),
	}
}

func rulesListAccess[M any]() rpc.AccessRule {
	return rpc.RequireVerbInNamespace("list", kinds.ImpliedRoles().GroupResource, requestNamespace[M])
}

func bindingsListAccess[M any]() rpc.AccessRule {
	return rpc.RequireVerbInNamespace("list", kinds.RoleBindings().GroupResource, requestNamespace[M])
}

func requestNamespace[M any](m *M) string {
	request, _ := any(m).(namespacedRequest)
	return request.GetNamespace()
}

// revisionRequest is a request about one namespace or all, which can require a minimum revision.
type revisionRequest interface {
	namespacedRequest
	GetMinRevision() string
}

// admitRequest returns an error if the informer is incomplete or too old for the request, or the namespace does not
// exist. The revision is read before the answer is computed, so the answer is at least as new.
func (s *Server) admitRequest(ctx context.Context, r revisionRequest) (revision string, err error) {
	if r.GetMinRevision() != "" {
		sequence, began, err := topology.ParseRevision(r.GetMinRevision())
		if err != nil {
			return "", rpc.InvalidError("min_revision: %w", err)
		}
		if err := s.cfg.Await(ctx, sequence, began); err != nil {
			return "", rpc.IncompleteError(err)
		}
	}
	revision = s.cfg.Revision()
	if err := s.cfg.Complete(); err != nil {
		return "", rpc.IncompleteError(err)
	}
	return revision, s.checkNamespace(ctx, r.GetNamespace())
}

// requestedNamespaces returns the requested namespace, or all namespaces that have rules.
func (s *Server) requestedNamespaces(namespace string) []string {
	if namespace != "" {
		return []string{namespace}
	}
	return s.cfg.State.NamespacesWithRules()
}

// ListRules implements InferenceService.
func (s *Server) ListRules(ctx context.Context, r *inferencev1.ListRulesRequest) (*inferencev1.ListRulesResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	var all []ruleRow
	for _, namespace := range s.requestedNamespaces(r.GetNamespace()) {
		all = append(all, s.ruleRows(namespace)...)
	}
	page, next, err := pageThatFits(all, func(r ruleRow) string { return joinKey(r.object.Key.Namespace, r.rule.Name) }, r, ruleRow.toMessage)
	if err != nil {
		return nil, err
	}
	return &inferencev1.ListRulesResponse{Rules: page, NextPageToken: next, Revision: revision, Synced: true}, nil
}

// ruleRow is a rule with its evaluation and its object.
type ruleRow struct {
	ruleSet *infer.RuleSet
	rule    *infer.EvaluatedRule
	object  *state.Rule
}

func (r ruleRow) isSynced() bool {
	c, known := findSyncedCondition(*r.object)
	return known && c.Status == metav1.ConditionTrue
}

func (r ruleRow) toMessage() *inferencev1.Rule { return toRuleMessage(r.ruleSet, *r.rule, *r.object) }

func (s *Server) ruleRows(namespace string) []ruleRow {
	ruleSet, objects := s.cfg.State.RuleSetAndRules(namespace)
	list := make([]ruleRow, len(objects))
	for i := range objects {
		list[i] = ruleRow{ruleSet, &ruleSet.Rules()[i], &objects[i]}
	}
	return list
}

// inferenceRow holds the role whose implied roles are listed, with its rule set.
type inferenceRow struct {
	namespace string
	parent    infer.Role
	ruleSet   *infer.RuleSet
}

func (r inferenceRow) rowKey() string { return joinKey(r.namespace, roleKey(r.parent)) }

func (r inferenceRow) toMessage() *inferencev1.Inference {
	return toInferenceMessage(r.namespace, r.parent, r.ruleSet)
}

// ListInferences implements InferenceService.
func (s *Server) ListInferences(ctx context.Context, r *inferencev1.ListInferencesRequest) (*inferencev1.ListInferencesResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.GetParent() != nil && r.GetNamespace() != "" {
		if _, err := s.checkRole(ctx, r.GetNamespace(), roleFromMessage(r.GetParent())); err != nil {
			return nil, err
		}
	}
	var all []inferenceRow
	for _, namespace := range s.requestedNamespaces(r.GetNamespace()) {
		ruleSet := s.cfg.State.RuleSet(namespace)
		for parent := range ruleSet.ParentRoles() {
			if r.GetParent() == nil || parent == roleFromMessage(r.GetParent()) {
				all = append(all, inferenceRow{namespace, parent, ruleSet})
			}
		}
	}
	page, next, err := pageThatFits(all, inferenceRow.rowKey, r, inferenceRow.toMessage)
	if err != nil {
		return nil, err
	}
	return &inferencev1.ListInferencesResponse{Inferences: page, NextPageToken: next, Revision: revision, Synced: true}, nil
}

// GetInference implements InferenceService.
func (s *Server) GetInference(ctx context.Context, r *inferencev1.GetInferenceRequest) (*inferencev1.GetInferenceResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	role := roleFromMessage(r.GetRole())
	missing, err := s.checkRole(ctx, r.GetNamespace(), role)
	if err != nil {
		return nil, err
	}
	return &inferencev1.GetInferenceResponse{
		Inference: toInferenceMessage(r.GetNamespace(), role, s.cfg.State.RuleSet(r.GetNamespace())),
		Revision:  revision, Synced: true, RoleMissing: missing,
	}, nil
}

// ListImplyingRoles implements InferenceService.
func (s *Server) ListImplyingRoles(ctx context.Context, r *inferencev1.ListImplyingRolesRequest) (*inferencev1.ListImplyingRolesResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	ruleSet := s.cfg.State.RuleSet(r.GetNamespace())
	role := roleFromMessage(r.GetRole())
	missing, err := s.checkRole(ctx, r.GetNamespace(), role)
	if err != nil {
		return nil, err
	}
	parents := ruleSet.ImplyingRoles(role)
	response := &inferencev1.ListImplyingRolesResponse{Total: int64(len(parents)), Revision: revision, Synced: true, RoleMissing: missing}
	response.Roles = toMessagesThatFit(parents, maxAnswer, func(parent infer.Role) *inferencev1.ImplyingRole {
		return &inferencev1.ImplyingRole{Role: toRoleMessage(parent), Direct: len(ruleSet.RulesBetween(parent, role)) > 0}
	})
	response.Truncated = len(response.GetRoles()) < len(parents)
	return response, nil
}

// joinKey joins parts so that the order of keys is the order of the parts.
func joinKey(parts ...string) string { return strings.Join(parts, "\x00") }

func roleKey(r infer.Role) string {
	if r.Cluster {
		return joinKey(r.Name, "1")
	}
	return joinKey(r.Name, "0")
}
