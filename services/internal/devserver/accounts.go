package devserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/rbac"
)

const rightPoll = 10 * time.Millisecond

// ApplyServiceAccounts applies the service accounts and their RBAC rules. It returns when the API server grants each
// service its first right, because new rules do not take effect at once.
func ApplyServiceAccounts(ctx context.Context, cfg *rest.Config, deploy fs.FS) error {
	if err := applyMatchingManifests(ctx, cfg, deploy, []string{"base/namespace.yaml", "base/*/rbac.yaml"}); err != nil {
		return err
	}
	for _, account := range rbac.ServiceAccounts() {
		for namespace, rights := range map[string][]rbac.Right{"": account.Everywhere, rbac.Namespace: account.Own} {
			if len(rights) == 0 {
				continue
			}
			if err := AwaitUserRight(ctx, cfg, account.UserName(), namespace, rights[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ApplyUserRoles applies the roles for users, which aggregate into the cluster's own roles.
func ApplyUserRoles(ctx context.Context, cfg *rest.Config, deploy fs.FS) error {
	return applyMatchingManifests(ctx, cfg, deploy, []string{"base/roles.yaml"})
}

// AwaitUserRight waits until user has the first verb of the right on its first resource. An empty namespace means all
// namespaces.
func AwaitUserRight(ctx context.Context, cfg *rest.Config, user, namespace string, right rbac.Right) error {
	ctx, cancel := context.WithTimeoutCause(ctx, manifestsReadyIn, errors.New("the API server does not grant the right yet"))
	defer cancel()
	client, err := authorizationclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("asking for rights of %s: %w", user, err)
	}
	about := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: right.Verbs[0], Group: right.APIGroups[0], Resource: right.Resources[0]}
	if len(right.ResourceNames) > 0 {
		about.Name = right.ResourceNames[0]
	}
	question := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: about}}
	for {
		answer, err := client.SubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed {
			return nil
		}
		if !backoff.Sleep(ctx, rightPoll) {
			return fmt.Errorf("waiting until %s may %s %s: %w", user, about.Verb, about.Resource, errors.Join(context.Cause(ctx), err))
		}
	}
}
