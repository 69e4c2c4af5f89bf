package allinone

import (
	"context"
	"fmt"
	"io/fs"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// applyServiceAccounts creates the accounts that services run as. In an external cluster it does so only if the user may
// impersonate them. Otherwise services act as the user.
func (m *localSystem) applyServiceAccounts(ctx context.Context, deploy fs.FS) error {
	var err error
	if m.servers.accounts = m.servers.local != nil; !m.servers.accounts {
		m.servers.accounts, err = canImpersonateServices(ctx, m.servers.kube)
	}
	if err != nil {
		return err
	}
	if !m.servers.accounts {
		m.printProgressf("services act with your rights, because you may not impersonate serviceaccounts in namespace %s", rbac.Namespace)
		return nil
	}
	err = devserver.ApplyServiceAccounts(ctx, m.servers.kube, deploy)
	if err != nil || m.servers.local == nil {
		return err // Entail does not decide access in the user's cluster.
	}
	return devserver.ApplyUserRoles(ctx, m.servers.kube, deploy)
}

// canImpersonateServices reports whether the user of cfg may impersonate every service. A user that is impersonated already may
// not.
func canImpersonateServices(ctx context.Context, cfg *rest.Config) (bool, error) {
	if cfg.Impersonate.UserName != "" {
		return false, nil
	}
	client, err := authorizationclient.NewForConfig(cfg)
	if err != nil {
		return false, fmt.Errorf("ask for your rights: %w", err)
	}
	for _, account := range rbac.ServiceAccounts() {
		about := &authorizationv1.ResourceAttributes{Namespace: rbac.Namespace, Verb: "impersonate", Resource: "serviceaccounts", Name: account.Service}
		question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: about}}
		answer, err := client.SelfSubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("ask for your rights: %w", err)
		}
		if !answer.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// restConfigFor returns the configuration with which a service calls the API server: as its own account, or as the user.
func (s *servers) restConfigFor(service string) (*rest.Config, error) {
	if s.local != nil {
		return s.local.UserConfig(service)
	}
	cfg := rest.CopyConfig(s.kube)
	if s.accounts {
		cfg.Impersonate.UserName = rbac.ServiceAccount{Service: service}.UserName()
	}
	return cfg, nil
}
