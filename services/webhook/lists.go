package webhook

import (
	"context"
	"slices"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// WhoCan implements AccessService.
func (s *accessServer) WhoCan(ctx context.Context, r *accessv1.WhoCanRequest) (*accessv1.WhoCanResponse, error) {
	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	q := s.queryFromRequest(x, authz.Subject{}, r.GetVerb(), r.GetResource())
	all, more := x.ListAllowedPrincipals(q, maxHolders)
	all = slices.DeleteFunc(all, func(h authz.AllowedPrincipal) bool {
		return h.Principal.Kind == authz.TokenGroup && !s.isEffectiveGroup(h.Principal.Name)
	})
	page, next, err := rpc.Paginate(all, holderKey, r)
	if err != nil {
		return nil, err
	}
	return &accessv1.WhoCanResponse{
		Holders: toMessages(page, toHolderMessage), NextPageToken: next, Truncated: more, Permission: q.Permission, Revision: revision,
		NoNamespace: s.lacksNamespace(q),
	}, nil
}

// WhatCan implements AccessService.
func (s *accessServer) WhatCan(ctx context.Context, r *accessv1.WhatCanRequest) (*accessv1.WhatCanResponse, error) {
	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	who, err := s.requestedSubject(ctx, r)
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	all := x.ListHeldRoles(who)
	page, next, err := rpc.Paginate(all, rightKey, r)
	if err != nil {
		return nil, err
	}
	if n := countRightsThatFit(page); n < len(page) {
		if page, next, err = rpc.Paginate(all, rightKey, requestWithPageSize{r, int32(n)}); err != nil {
			return nil, err
		}
	}
	rights := toMessages(page, func(right authz.HeldRole) *accessv1.Right { return toRightMessage(x, right) })
	return &accessv1.WhatCanResponse{Rights: rights, NextPageToken: next, Revision: revision}, nil
}

// isEffectiveGroup reports whether the rights of a group of the authenticator take effect.
func (s *accessServer) isEffectiveGroup(group string) bool {
	return len(s.rules.EffectiveGroups([]string{group})) > 0
}

// countRightsThatFit returns the number of rights of a page that fit in an answer, at least one.
func countRightsThatFit(page []authz.HeldRole) int {
	listed := 0
	for i, right := range page {
		if listed += right.PermissionCount; i > 0 && listed > maxPermissions {
			return i
		}
	}
	return len(page)
}

// requestWithPageSize is a page request with a smaller size.
type requestWithPageSize struct {
	rpc.PageTokenRequest
	size int32
}

// GetPageSize implements [rpc.PageTokenRequest].
func (s requestWithPageSize) GetPageSize() int32 { return s.size }

// ListProtectedResources implements AccessService.
func (s *accessServer) ListProtectedResources(
	ctx context.Context, r *accessv1.ListProtectedResourcesRequest,
) (*accessv1.ListProtectedResourcesResponse, error) {
	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	registry := x.Registry()
	page, next, err := rpc.Paginate(registry.Kinds(), func(k *iam.RegisteredKind) string { return k.Type }, r)
	if err != nil {
		return nil, err
	}
	resources := toMessages(page, func(k *iam.RegisteredKind) *accessv1.ProtectedResource {
		return toProtectedResourceMessage(registry, k)
	})
	return &accessv1.ListProtectedResourcesResponse{Resources: resources, NextPageToken: next, Revision: revision}, nil
}

// PreviewBinding implements AccessService.
func (s *accessServer) PreviewBinding(ctx context.Context, r *accessv1.PreviewBindingRequest) (*accessv1.PreviewBindingResponse, error) {
	x, revision, err := s.awaitIndexAtLeast(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	b := bindingFromPreviewRequest(r)
	preview := x.PreviewBinding(r.GetNamespace(), b, maxPermissions)
	for i, gain := range preview.Gains {
		if gain.Subject.Kind == iamv1alpha1.GroupKind && !s.isEffectiveGroup(gain.Subject.Name) {
			preview.Gains[i] = authz.PermissionGain{Subject: gain.Subject, Absent: true}
		}
	}
	if preview.More {
		return nil, rpc.InvalidError(
			"the subjects would gain more than %d permissions, each counted for each: ask about fewer subjects at a time", maxPermissions)
	}
	answer := &accessv1.PreviewBindingResponse{
		NoRole: preview.NoRole, NoTarget: preview.NoTarget, Gains: toMessages(preview.Gains, toGainMessage), Revision: revision,
	}
	if caller, known := rpc.CallerFromContext(ctx); known {
		if m, lacks := x.MissingToBind(s.rules.IdentifySubject(caller), r.GetNamespace(), &b.Spec); lacks {
			answer.Lacking = toMissingMessage(m)
		}
	}
	return answer, nil
}

// bindingFromPreviewRequest returns the PolicyBinding that a preview describes.
func bindingFromPreviewRequest(r *accessv1.PreviewBindingRequest) *iamv1alpha1.PolicyBinding {
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
