package opensearchsync

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"connectrpc.com/connect"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	resources "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// queryServer implements OpenSearchService with the informer and listings of clusters.
type queryServer struct {
	state       *state
	connections *connectionPool
	verifier    *verify.Verifier
	// cluster is the Kubernetes cluster whose objects the service answers for.
	cluster string
	// complete returns nil once the informer is complete.
	complete func() error
	// large has room for one request that holds large lists.
	large chan struct{}
}

// readLists calls read with room for small lists, and again with room for large ones if they do not fit.
func readLists[T any](ctx context.Context, s *queryServer, read func(lists *search.Allowance) (T, error)) (T, error) {
	answer, err := read(search.NewAllowance(false))
	if !errors.Is(err, search.ErrLarge) {
		return answer, err
	}
	select {
	case s.large <- struct{}{}:
		defer func() { <-s.large }()
		return read(search.NewAllowance(true))
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}

// clusterRequest is a request for one OpenSearchCluster.
type clusterRequest interface {
	GetCluster() *opensearchv1.ClusterRef
}

// rpcHandler returns the handler of s. Each procedure requires the verb connect on clusters of the namespace, because its
// answer shows the content of a cluster.
func (s *queryServer) rpcHandler() rpc.Handler {
	access := map[string]rpc.AccessRule{
		opensearchv1connect.OpenSearchServiceListUsersProcedure:      requireConnect[opensearchv1.ListUsersRequest](),
		opensearchv1connect.OpenSearchServiceListRolesProcedure:      requireConnect[opensearchv1.ListRolesRequest](),
		opensearchv1connect.OpenSearchServiceListMappingsProcedure:   requireConnect[opensearchv1.ListMappingsRequest](),
		opensearchv1connect.OpenSearchServiceExplainMappingProcedure: requireConnect[opensearchv1.ExplainMappingRequest](),
		opensearchv1connect.OpenSearchServicePreviewProcedure:        requireConnect[opensearchv1.PreviewRequest](),
		opensearchv1connect.OpenSearchServiceGetSyncStatusProcedure:  requireConnect[opensearchv1.GetSyncStatusRequest](),
	}
	return rpc.NewHandler[opensearchv1connect.OpenSearchServiceHandler](
		opensearchv1connect.OpenSearchServiceName, opensearchv1connect.NewOpenSearchServiceHandler, s, access)
}

// requireConnect requires the verb connect on clusters of the request's namespace.
func requireConnect[M any, P interface {
	*M
	clusterRequest
}]() rpc.AccessRule {
	return rpc.RequireVerbInNamespace("connect", kinds.OpenSearchClusters().GroupResource,
		func(request *M) string { return P(request).GetCluster().GetNamespace() })
}

// entityListing holds the entities of one kind, the objects that declare them, and the UUID of the server.
type entityListing struct {
	actual  map[string]plan.Entity
	objects []declaredObject
	server  string
}

// listEntities reads the entities of a kind in the cluster of a request.
func (s *queryServer) listEntities(ctx context.Context, ref *opensearchv1.ClusterRef, kind plan.EntityKind,
	lists *search.Allowance,
) (l entityListing, err error) {
	cluster, to, err := s.connectToCluster(ctx, ref)
	if err != nil {
		return l, err
	}
	if l.server, err = to.client.ClusterUUID(ctx); err != nil {
		return l, err
	}
	l.actual, err = to.client.List(ctx, kind, lists)
	l.objects = s.state.tables[kind].objectsOfCluster(cluster.Key, string(cluster.Value.UID))
	return l, err
}

// connectToCluster returns the cluster of a request and the connection to it.
func (s *queryServer) connectToCluster(ctx context.Context, ref *opensearchv1.ClusterRef) (cluster informer.Object[resources.OpenSearchCluster],
	to *clusterConnection, err error,
) {
	key := clusterKey(s.cluster, ref.GetNamespace(), ref.GetName())
	found, err := rpc.FindObject(s.complete, s.state.liveCluster, key)
	switch {
	case err != nil:
		return found, nil, err
	case found.Value.DeletionTimestamp != nil:
		return found, nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("the OpenSearchCluster is being deleted"))
	}
	if err := s.verifier.Verify(ctx, expectedClusterState(found)); err != nil {
		return found, nil, err
	}
	to, err = s.connections.connectionFor(ctx, found.Value)
	if waiting, ok := errors.AsType[*clusterNotReadyError](err); ok {
		err = connect.NewError(connect.CodeFailedPrecondition, waiting)
	}
	return found, to, err
}

// ListUsers lists all users in a cluster, including those of other writers.
func (s *queryServer) ListUsers(ctx context.Context, request *opensearchv1.ListUsersRequest) (*opensearchv1.ListUsersResponse, error) {
	things, err := s.listThings(ctx, request.GetCluster(), plan.Users)
	return &opensearchv1.ListUsersResponse{Users: things}, err
}

// ListRoles lists all roles in a cluster.
func (s *queryServer) ListRoles(ctx context.Context, request *opensearchv1.ListRolesRequest) (*opensearchv1.ListRolesResponse, error) {
	things, err := s.listThings(ctx, request.GetCluster(), plan.Roles)
	return &opensearchv1.ListRolesResponse{Roles: things}, err
}

func (s *queryServer) listThings(ctx context.Context, ref *opensearchv1.ClusterRef, kind plan.EntityKind) ([]*opensearchv1.Thing, error) {
	return readLists(ctx, s, func(lists *search.Allowance) ([]*opensearchv1.Thing, error) {
		l, err := s.listEntities(ctx, ref, kind, lists)
		if err != nil {
			return nil, err
		}
		return l.toThings(kind), nil
	})
}

// toThings returns the entities of a listing and those that objects declare, sorted by name.
func (l entityListing) toThings(kind plan.EntityKind) []*opensearchv1.Thing {
	all := map[string]*opensearchv1.Thing{}
	for name, entity := range l.actual {
		all[name] = &opensearchv1.Thing{Name: name, Exists: true, Reserved: entity.Guarded}
	}
	asking := toPlanObjects(l.objects, l.server, nil, nil)
	for i, o := range l.objects {
		thing, name, state := all[o.value.OpenSearchName()], o.value.OpenSearchName(), o.value.CommonStatus()
		if thing == nil {
			thing = &opensearchv1.Thing{Name: name}
			all[name] = thing
		}
		owns := !thing.GetExists() || kind.IsOwner(l.actual[name], asking[i])
		if thing.GetState() != "" && !owns {
			continue
		}
		thing.State, thing.Reason, thing.AskedBy = string(state.State), state.Reason, o.Key.NamespacedName()
		if owns {
			thing.Owner = o.Key.NamespacedName()
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *opensearchv1.Thing) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

// listMappings reads the mappings and the accounts in the cluster of a request.
func (s *queryServer) listMappings(ctx context.Context, ref *opensearchv1.ClusterRef, lists *search.Allowance) (
	l entityListing, accounts []plan.UserAccount, err error,
) {
	if l, err = s.listEntities(ctx, ref, plan.Mappings, lists); err != nil {
		return l, nil, err
	}
	users, err := s.listEntities(ctx, ref, plan.Users, lists)
	return l, plan.ListAccounts(users.actual), err
}

// ListMappings lists the roles that have a mapping or a direct holder.
func (s *queryServer) ListMappings(ctx context.Context, request *opensearchv1.ListMappingsRequest) (*opensearchv1.ListMappingsResponse, error) {
	return readLists(ctx, s, func(lists *search.Allowance) (*opensearchv1.ListMappingsResponse, error) {
		l, accounts, err := s.listMappings(ctx, request.GetCluster(), lists)
		if err != nil {
			return nil, err
		}
		return listAllMappings(l, accounts), nil
	})
}

func listAllMappings(l entityListing, accounts []plan.UserAccount) *opensearchv1.ListMappingsResponse {
	answer, roles := &opensearchv1.ListMappingsResponse{}, slices.Collect(maps.Keys(l.actual))
	for _, a := range accounts {
		roles = append(roles, a.Roles...)
	}
	slices.Sort(roles)
	for _, role := range slices.Compact(roles) {
		has := l.actual[role].MappingEntries()
		m := &opensearchv1.Mapping{Role: role, Users: has.Users, BackendRoles: has.BackendRoles, Hosts: has.Hosts, AndBackendRoles: has.And}
		m.Holders = holdersToProto(plan.FindHolders(role, has, accounts))
		for _, o := range l.objects {
			if b, ok := o.value.(*resources.OpensearchUserRoleBinding); ok && slices.Contains(b.Spec.Roles, role) {
				m.Bindings = append(m.Bindings, o.Key.NamespacedName())
			}
		}
		answer.Mappings = append(answer.Mappings, m)
	}
	return answer
}

func holdersToProto(holders []plan.RoleHolder) (all []*opensearchv1.Holder) {
	for _, h := range holders {
		all = append(all, &opensearchv1.Holder{User: h.User, Direct: h.Direct, BackendRoles: h.BackendRoles})
	}
	return all
}

// ExplainMapping returns the source of each entry of a role's mapping, and the holders of the role.
func (s *queryServer) ExplainMapping(ctx context.Context, request *opensearchv1.ExplainMappingRequest) (*opensearchv1.ExplainMappingResponse, error) {
	return readLists(ctx, s, func(lists *search.Allowance) (*opensearchv1.ExplainMappingResponse, error) {
		l, accounts, err := s.listMappings(ctx, request.GetCluster(), lists)
		if err != nil {
			return nil, err
		}
		if err := s.checkRoleName(ctx, request, lists, l, accounts); err != nil {
			return nil, err
		}
		return explainMapping(request.GetRole(), l, accounts), nil
	})
}

func explainMapping(role string, l entityListing, accounts []plan.UserAccount) *opensearchv1.ExplainMappingResponse {
	paths := map[string]string{}
	for _, o := range l.objects {
		paths[string(o.value.GetUID())] = o.Key.NamespacedName()
	}
	answer := &opensearchv1.ExplainMappingResponse{
		Holders: holdersToProto(plan.FindHolders(role, l.actual[role].MappingEntries(), accounts)),
	}
	for _, e := range plan.ExplainMapping(role, toPlanBindings(l.objects, l.server, nil), l.actual[role]) {
		entry := &opensearchv1.Entry{List: e.List, Value: e.Value, Foreign: e.Foreign, Exists: e.Exists}
		for _, uid := range e.Bindings {
			entry.Bindings = append(entry.Bindings, paths[uid])
		}
		answer.Entries = append(answer.Entries, entry)
	}
	return answer
}

// GetSyncStatus counts the objects of a cluster by kind and state.
func (s *queryServer) GetSyncStatus(_ context.Context, request *opensearchv1.GetSyncStatusRequest) (*opensearchv1.GetSyncStatusResponse, error) {
	key := clusterKey(s.cluster, request.GetCluster().GetNamespace(), request.GetCluster().GetName())
	if _, err := rpc.FindObject(s.complete, s.state.liveCluster, key); err != nil {
		return nil, err
	}
	answer := &opensearchv1.GetSyncStatusResponse{}
	for _, kind := range plan.AllKinds() {
		states := map[string]int32{}
		for _, o := range s.state.tables[kind].objectsOfCluster(key, "") {
			states[string(o.value.CommonStatus().State)]++
		}
		answer.Kinds = append(answer.Kinds, &opensearchv1.KindStatus{Kind: string(kind), States: states})
	}
	return answer, nil
}
