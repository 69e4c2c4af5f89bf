package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/bootclock"
)

const (
	// roundInterval is the time between two checks of the certificate and the registration. retryInterval is the wait
	// after a failed check.
	roundInterval = 5 * time.Second
	retryInterval = 250 * time.Millisecond
	// registrationTimeout bounds the time without a successful check. After this time RegistrationErr returns an error.
	registrationTimeout = 30 * time.Second
	// nonexistentVersion is a resourceVersion that no object has. An apply with it either creates the object or returns a
	// conflict.
	nonexistentVersion = "1"
)

// runRegistrationLoop checks the certificate and the registration repeatedly until ctx ends.
func (s *Server) runRegistrationLoop(ctx context.Context) {
	for wait := time.Duration(0); backoff.Sleep(ctx, wait); {
		err := s.RefreshRegistration(ctx)
		if wait = roundInterval; err != nil && ctx.Err() == nil {
			wait = retryInterval
			s.options.Log.WarnContext(ctx, "the webhooks could not be registered; trying again", slog.Any("error", err))
		}
	}
}

// RefreshRegistration checks the certificate and the registration at once. Call it after a change of a
// [NamespaceScope].
func (s *Server) RefreshRegistration(ctx context.Context) error {
	s.rounds.Lock()
	defer s.rounds.Unlock()
	began := bootclock.Now()
	err := s.refreshRegistrationOnce(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure = err; err == nil {
		s.registered = began
	}
	return err
}

// refreshRegistrationOnce updates the certificate and the registration. It serves a new certificate only at the next
// check after its authority was registered, so that the API server already trusts the authority.
func (s *Server) refreshRegistrationOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	next, err := s.loadOrRenewCertificate(ctx)
	if err != nil {
		return err
	}
	s.next.Store(next)
	if s.announced == nil || bytes.Equal(s.announced.chain, next.chain) {
		s.serving.Store(next)
		s.metrics.expiry.Set(float64(next.pair.Leaf.NotAfter.Unix()))
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return s.applyRegistration(ctx, next) }); err != nil {
		return err
	}
	s.announced = next
	return nil
}

// applyRegistration creates or updates the ValidatingWebhookConfiguration.
func (s *Server) applyRegistration(ctx context.Context, c *servingCertificate) error {
	configurations := s.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	is, err := configurations.Get(ctx, s.options.Name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", s.options.Name, err)
	}
	want, err := s.desiredWebhooks(ctx, c, is.Webhooks)
	if err != nil {
		return err
	}
	soon, err := s.nextEffectiveTime()
	if err != nil {
		return err
	}
	since, changed := s.recordedEnforcedSince(is, want, soon), !equality.Semantic.DeepEqual(is.Webhooks, want)
	if since.IsZero() {
		since, changed = soon, true
	}
	switch {
	case missing:
		err = s.createRegistration(ctx, want, since)
	case changed:
		metav1.SetMetaDataAnnotation(&is.ObjectMeta, enforcedSinceAnnotation, since.Format(time.RFC3339))
		is.Webhooks = want
		_, err = configurations.Update(ctx, is, metav1.UpdateOptions{FieldManager: s.options.Name})
	}
	if err != nil {
		return fmt.Errorf("writing ValidatingWebhookConfiguration %s: %w", s.options.Name, err)
	}
	s.mu.Lock()
	s.enforcedSince = since
	s.mu.Unlock()
	if changed {
		s.options.Log.InfoContext(ctx, "the webhooks were registered", slog.String("configuration", s.options.Name))
	}
	for i, webhook := range s.options.Webhooks {
		if webhook.Scope != nil {
			webhook.Scope.RecordRegistered(want[i].NamespaceSelector)
		}
	}
	return nil
}

// createRegistration creates the configuration by server-side apply, because RBAC can restrict a patch to a name but
// not a create.
func (s *Server) createRegistration(ctx context.Context, webhooks []admissionregistrationv1.ValidatingWebhook, since time.Time) error {
	patch, err := json.Marshal(&admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.options.Name, ResourceVersion: nonexistentVersion, Annotations: map[string]string{enforcedSinceAnnotation: since.Format(time.RFC3339)},
		},
		Webhooks: webhooks,
	})
	if err != nil {
		return err
	}
	_, err = s.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, s.options.Name, types.ApplyPatchType, patch, s.forceApplyOptions())
	return err
}

func (s *Server) forceApplyOptions() metav1.PatchOptions {
	force := true
	return metav1.PatchOptions{FieldManager: s.options.Name, Force: &force}
}
