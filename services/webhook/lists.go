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
func (s *server) WhoCan(ctx context.Context, r *accessv1.WhoCanRequest) (*accessv1.WhoCanResponse, error) {
	x, revision, err := s.decideAtRevision(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	q := s.queryOf(x, authz.Subject{}, r.GetVerb(), r.GetResource())
	all, more := x.WhoCan(q, maxHolders)
	all = slices.DeleteFunc(all, func(h authz.Holder) bool {
		return h.Principal.Sort == authz.TokenGroup && !s.isCountedGroup(h.Principal.Name)
	})
	page, next, err := rpc.Page(all, holderKey, r)
	if err != nil {
		return nil, err
	}
	return &accessv1.WhoCanResponse{
		Holders: toMessages(page, holderMessage), NextPageToken: next, Truncated: more, Permission: q.Permission, Revision: revision,
		NoNamespace: s.needsNamespace(q),
	}, nil
}

// WhatCan implements AccessService.
func (s *server) WhatCan(ctx context.Context, r *accessv1.WhatCanRequest) (*accessv1.WhatCanResponse, error) {
	x, revision, err := s.decideAtRevision(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	who, err := s.subjectOf(ctx, r)
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	all := x.WhatCan(who)
	page, next, err := rpc.Page(all, rightKey, r)
	if err != nil {
		return nil, err
	}
	if n := rowsThatFit(page); n < len(page) {
		if page, next, err = rpc.Page(all, rightKey, shorter{r, int32(n)}); err != nil {
			return nil, err
		}
	}
	rights := toMessages(page, func(right authz.Right) *accessv1.Right { return rightMessage(x, right) })
	return &accessv1.WhatCanResponse{Rights: rights, NextPageToken: next, Revision: revision}, nil
}

// isCountedGroup reports whether the rights of a group of the authenticator take effect.
func (s *server) isCountedGroup(group string) bool { return len(s.rules.Groups([]string{group})) > 0 }

// rowsThatFit returns the number of rights of a page that fit in an answer, at least one.
func rowsThatFit(page []authz.Right) int {
	listed := 0
	for i, right := range page {
		if listed += right.Gives; i > 0 && listed > maxPermissions {
			return i
		}
	}
	return len(page)
}

// shorter is a page request with a smaller size.
type shorter struct {
	rpc.PageRequest
	size int32
}

// GetPageSize implements [rpc.PageRequest].
func (s shorter) GetPageSize() int32 { return s.size }

// ListProtectedResources implements AccessService.
func (s *server) ListProtectedResources(
	ctx context.Context, r *accessv1.ListProtectedResourcesRequest,
) (*accessv1.ListProtectedResourcesResponse, error) {
	x, revision, err := s.decideAtRevision(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	registry := x.Registry()
	page, next, err := rpc.Page(registry.Kinds(), func(k *iam.Kind) string { return k.Type }, r)
	if err != nil {
		return nil, err
	}
	resources := toMessages(page, func(k *iam.Kind) *accessv1.ProtectedResource { return resourceMessage(registry, k) })
	return &accessv1.ListProtectedResourcesResponse{Resources: resources, NextPageToken: next, Revision: revision}, nil
}

// PreviewBinding implements AccessService.
func (s *server) PreviewBinding(ctx context.Context, r *accessv1.PreviewBindingRequest) (*accessv1.PreviewBindingResponse, error) {
	x, revision, err := s.decideAtRevision(ctx, r.GetAtLeast())
	if err != nil {
		return nil, err
	}
	release, err := s.limiter.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	b := previewedBinding(r)
	preview := x.Preview(r.GetNamespace(), b, maxPermissions)
	for i, gain := range preview.Gains {
		if gain.Subject.Kind == iamv1alpha1.GroupKind && !s.isCountedGroup(gain.Subject.Name) {
			preview.Gains[i] = authz.Gain{Subject: gain.Subject, Absent: true}
		}
	}
	if preview.More {
		return nil, rpc.Invalid("the subjects would gain more than %d permissions, each counted for each: ask about fewer subjects at a time", maxPermissions)
	}
	answer := &accessv1.PreviewBindingResponse{
		NoRole: preview.NoRole, NoTarget: preview.NoTarget, Gains: toMessages(preview.Gains, gainMessage), Revision: revision,
	}
	if caller, known := rpc.CallerOf(ctx); known {
		if m, lacks := x.MissingToBind(s.rules.Identify(caller), r.GetNamespace(), &b.Spec); lacks {
			answer.Lacking = missingMessage(m)
		}
	}
	return answer, nil
}

// previewedBinding returns the PolicyBinding that a preview describes.
func previewedBinding(r *accessv1.PreviewBindingRequest) *iamv1alpha1.PolicyBinding {
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
