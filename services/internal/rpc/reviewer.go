package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/fault"
)

// Bounds of the cached answers of the API server. A revoked right stops working within grantCacheTTL.
const (
	grantCacheTTL   = 30 * time.Second
	refusalCacheTTL = 5 * time.Second
	maxAnswers      = 4096
	maxQuestions    = 32 // concurrent reviews
	reviewTimeout   = 5 * time.Second
)

// accessReviewer authenticates and authorizes callers at the API server, and caches the answers for a short time.
type accessReviewer struct {
	tokens  authenticationclient.TokenReviewInterface
	rights  authorizationclient.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache
	flights singleflight.Group
	slots   *semaphore.Weighted
}

func newAccessReviewer(cfg *rest.Config) (*accessReviewer, error) {
	if cfg == nil {
		return nil, errors.New("authentication by Kubernetes needs an API server to ask")
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // The caches and the API server bound the rate.
	authentication, err := authenticationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client for token reviews: %w", err)
	}
	authorization, err := authorizationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client for access reviews: %w", err)
	}
	return &accessReviewer{
		tokens: authentication.TokenReviews(), rights: authorization.SubjectAccessReviews(),
		answers: cache.NewLRUExpireCache(maxAnswers), slots: semaphore.NewWeighted(maxQuestions),
	}, nil
}

// cachedReview returns the cached answer for key, or calls ask. Concurrent callers with the same key share one call,
// which no caller can cancel.
func cachedReview[T any](ctx context.Context, r *accessReviewer, key any, ask func(context.Context) (T, time.Duration, error)) (T, error) {
	if kept, ok := r.answers.Get(key); ok {
		if answer, ok := kept.(T); ok {
			return answer, nil
		}
	}
	flight := r.flights.DoChan(fmt.Sprintf("%#v", key), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		if err := r.slots.Acquire(ctx, 1); err != nil {
			return nil, fault.Unavailable(fmt.Errorf("waiting for %d other questions: %w", maxQuestions, err))
		}
		defer r.slots.Release(1)
		answer, ttl, err := ask(ctx)
		if err == nil {
			r.answers.Add(key, answer, ttl)
		}
		return answer, err
	})
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case result := <-flight:
		answer, _ := result.Val.(T) // The value is zero if there is an error.
		return answer, result.Err
	}
}

// reviewError returns a different error for a missing right of this service and for an unavailable API server.
func reviewError(what string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("reviewing a %s: this service lacks the right; apply its ClusterRole in deploy/base: %w", what, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("reviewing a %s: the API server does not accept the credentials of this service's kubeconfig or pod: %w", what, err)
	}
	return fault.Unavailable(fmt.Errorf("reviewing a %s: %w", what, err))
}
