package webhook

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/api/meta"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/internal/view"
)

const (
	// maxTurns is how many lists and previews are made at a time.
	maxTurns = 4
	// maxHolders is how many are looked for who may do something.
	maxHolders = 100_000
)

// server answers AccessService.
type server struct {
	state *state
	view  *view.View
	// cluster is the one whose objects are asked about, store the name of its Store of IAM.
	cluster, store string
	// fetch reads an object at the API server, nil if there is none.
	fetch func(context.Context, event.Key) ([]byte, error)
	turns rpc.Turns
}

var _ accessv1connect.AccessServiceHandler = (*server)(nil)

// handler mounts s. It asks of a caller what the API server would: the right to ask what others may.
func (s *server) handler() rpc.Handler {
	others := rpc.Can("create", event.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"})
	list := rpc.Can("list", kinds.ProtectedResources().GroupResource)
	return rpc.NewHandler[accessv1connect.AccessServiceHandler](accessv1connect.AccessServiceName, accessv1connect.NewAccessServiceHandler, s,
		map[string]rpc.Access{
			accessv1connect.AccessServiceCheckAccessProcedure:            others,
			accessv1connect.AccessServiceExplainAccessProcedure:          others,
			accessv1connect.AccessServiceWhoCanProcedure:                 others,
			accessv1connect.AccessServiceWhatCanProcedure:                others,
			accessv1connect.AccessServicePreviewBindingProcedure:         others,
			accessv1connect.AccessServiceListProtectedResourcesProcedure: list,
			accessv1connect.AccessServiceGetModelStatusProcedure:         list,
		})
}

// ready is the index, and the revision that it holds at least: it is taken before the answer.
func (s *server) ready(ctx context.Context, least *accessv1.AtLeast) (x *decide.Index, revision string, err error) {
	if least.GetRevision() != "" {
		sequence, began, err := topology.ParseRevision(least.GetRevision())
		if err != nil {
			return nil, "", rpc.Invalid("at_least: %w", err)
		}
		if err := s.view.Await(ctx, sequence, began); err != nil {
			return nil, "", rpc.Incomplete(err)
		}
	}
	if least.GetObject() != nil {
		if err := s.awaitObject(ctx, event.KeyOf(least.GetObject())); err != nil {
			return nil, "", err
		}
	}
	revision = s.view.Revision()
	return s.state.index.Load(), revision, rpc.Incomplete(s.view.Complete())
}

func (s *server) awaitObject(ctx context.Context, key event.Key) error {
	key.Cluster = s.cluster
	if _, ok := s.state.kinds[key.GroupResource]; !ok {
		return rpc.Invalid("at_least: objects of %s are not followed", key.GroupResource)
	}
	giveBack, err := s.turns.Take(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	object, err := s.fetch(ctx, key)
	if err != nil {
		return err
	}
	return rpc.Incomplete(s.state.await(ctx, key, object))
}

// CheckAccess implements AccessService.
func (s *server) CheckAccess(ctx context.Context, r *accessv1.CheckAccessRequest) (*accessv1.CheckAccessResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	q := question(x, r.GetSubject(), r.GetVerb(), r.GetResource())
	answer := &accessv1.CheckAccessResponse{Permission: q.Permission, Revision: revision}
	why, allowed := x.Decide(q)
	if allowed {
		answer.Allowed, answer.Grant = true, grantMessage(why)
	}
	return answer, nil
}

// ExplainAccess implements AccessService.
func (s *server) ExplainAccess(ctx context.Context, r *accessv1.ExplainAccessRequest) (*accessv1.ExplainAccessResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	q := question(x, r.GetSubject(), r.GetVerb(), r.GetResource())
	e := x.Explain(q)
	answer := &accessv1.ExplainAccessResponse{
		Allowed: e.Allowed, Permission: q.Permission, Unregistered: e.Unregistered, NoSubject: e.NoSubject, NoObject: e.NoObject,
		Inherits: messages(e.Inherits, nameMessage), Path: messages(e.Path, placeMessage), Lacking: messages(e.Lacking, grantMessage), Revision: revision,
	}
	if e.Allowed {
		answer.Grant, answer.Membership = grantMessage(e.Proof), optional(e.Membership)
	}
	return answer, nil
}

// WhoCan implements AccessService.
func (s *server) WhoCan(ctx context.Context, r *accessv1.WhoCanRequest) (*accessv1.WhoCanResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	giveBack, err := s.turns.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	q := question(x, nil, r.GetVerb(), r.GetResource())
	all, more := x.WhoCan(q, maxHolders)
	page, next, err := rpc.Page(all, holderKey, r)
	if err != nil {
		return nil, err
	}
	return &accessv1.WhoCanResponse{
		Holders: messages(page, holderMessage), NextPageToken: next, Truncated: more, Permission: q.Permission, Revision: revision,
	}, nil
}

// WhatCan implements AccessService.
func (s *server) WhatCan(ctx context.Context, r *accessv1.WhatCanRequest) (*accessv1.WhatCanResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	giveBack, err := s.turns.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	page, next, err := rpc.Page(x.WhatCan(subject(r.GetSubject())), rightKey, r)
	if err != nil {
		return nil, err
	}
	return &accessv1.WhatCanResponse{Rights: messages(page, rightMessage), NextPageToken: next, Revision: revision}, nil
}

// ListProtectedResources implements AccessService.
func (s *server) ListProtectedResources(
	ctx context.Context, r *accessv1.ListProtectedResourcesRequest,
) (*accessv1.ListProtectedResourcesResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	registry := x.Registry()
	page, next, err := rpc.Page(registry.Kinds(), func(k *iam.Kind) string { return k.Type }, r)
	if err != nil {
		return nil, err
	}
	resources := messages(page, func(k *iam.Kind) *accessv1.ProtectedResource { return resourceMessage(registry, k) })
	return &accessv1.ListProtectedResourcesResponse{Resources: resources, NextPageToken: next, Revision: revision}, nil
}

// GetModelStatus implements AccessService.
func (s *server) GetModelStatus(ctx context.Context, r *accessv1.GetModelStatusRequest) (*accessv1.GetModelStatusResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	registry := x.Registry()
	types := registry.Types()
	answer := &accessv1.GetModelStatusResponse{
		Store: s.store, Kinds: int32(len(registry.Kinds())), Types: int32(len(types)), Bytes: int32(iam.Size(types)),
		Age: durationpb.New(s.view.Age()), Revision: revision,
	}
	for _, k := range registry.Kinds() {
		answer.Permissions += int32(len(k.Permissions))
	}
	store, live := s.state.stores.Get(event.Key{Cluster: s.cluster, GroupResource: kinds.Stores().GroupResource, Name: s.store})
	if !live {
		answer.Message = "there is no such Store: store-sync makes it"
		return answer, nil
	}
	answer.StoreId, answer.AuthorizationModelId = store.Value.Status.StoreID, store.Value.Status.AuthorizationModelID
	if c := meta.FindStatusCondition(store.Value.Status.Conditions, corev1alpha1.ModelSynced); c != nil {
		answer.Synced = c.Status == "True" && c.ObservedGeneration == store.Value.Generation
		answer.Message = c.Reason + ": " + c.Message
	}
	return answer, nil
}

// PreviewBinding implements AccessService.
func (s *server) PreviewBinding(ctx context.Context, r *accessv1.PreviewBindingRequest) (*accessv1.PreviewBindingResponse, error) {
	x, revision, err := s.ready(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	giveBack, err := s.turns.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	preview := x.Preview(r.GetNamespace(), binding(r))
	return &accessv1.PreviewBindingResponse{
		NoRole: preview.NoRole, NoTarget: preview.NoTarget, Gains: messages(preview.Gains, gainMessage), Revision: revision,
	}, nil
}

// binding is the one that a preview is about.
func binding(r *accessv1.PreviewBindingRequest) *iamv1alpha1.PolicyBinding {
	b := &iamv1alpha1.PolicyBinding{}
	b.Spec.RoleRef = iamv1alpha1.RoleReference{Namespace: r.GetRole().GetNamespace(), Name: r.GetRole().GetName()}
	for _, s := range r.GetSubjects() {
		b.Spec.Subjects = append(b.Spec.Subjects, iamv1alpha1.Subject{Kind: s.GetKind(), Name: s.GetName(), Namespace: s.GetNamespace(), UID: s.GetUid()})
	}
	if t := r.GetTarget(); t.GetName() == "" {
		b.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: t.GetApiGroup(), Kind: t.GetKind()}
	} else {
		b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{
			APIGroup: t.GetApiGroup(), Kind: t.GetKind(), Namespace: t.GetNamespace(), Name: t.GetName(), UID: t.GetUid(),
		}
	}
	return b
}

func messages[T, M any](all []T, message func(T) M) []M {
	list := make([]M, 0, len(all))
	for _, item := range all {
		list = append(list, message(item))
	}
	return slices.Clip(list)
}
