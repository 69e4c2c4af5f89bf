package opensearchsync

import (
	"context"
	"maps"
	"slices"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	resources "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/nearest"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// checkRoleName returns an error for the caller if neither the cluster nor a user nor a binding has a role of that name. The
// caller may see the content of the cluster.
func (s *queryServer) checkRoleName(ctx context.Context, request *opensearchv1.ExplainMappingRequest, lists *search.Allowance,
	l entityListing, accounts []plan.UserAccount,
) error {
	known := slices.Collect(maps.Keys(l.actual))
	for _, a := range accounts {
		known = append(known, a.Roles...)
	}
	for _, o := range l.objects {
		if b, ok := o.value.(*resources.OpensearchUserRoleBinding); ok {
			known = append(known, b.Spec.Roles...)
		}
	}
	if slices.Contains(known, request.GetRole()) {
		return nil
	}
	roles, err := s.listEntities(ctx, request.GetCluster(), plan.Roles, lists)
	if err != nil {
		return err
	}
	if _, ok := roles.actual[request.GetRole()]; ok {
		return nil
	}
	known = append(known, slices.Collect(maps.Keys(roles.actual))...)
	return rpc.NotFoundError("the cluster has no role %q, and no binding names it%s", request.GetRole(), nearest.Hint(request.GetRole(), "roles", known))
}
