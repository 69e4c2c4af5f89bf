package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/prometheus/client_golang/prometheus"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
)

const (
	// maxContext bounds the contextual tuples that OpenFGA accepts with a check.
	maxContext = 100
	// maxParts bounds the checks into which one question is split for a subject in many groups.
	maxParts = 20
	// adoptionTTL bounds the time for which the ownership of a store is cached.
	adoptionTTL = 10 * time.Second
)

var (
	errNoStore    = errors.New("there is no Store of IAM with a model in OpenFGA")
	errNotAdopted = errors.New("the store in OpenFGA does not belong to this cluster")
	errTwo        = errors.New("a question can name a user or a service account, not both")
)

// openFGAClient lists the calls of OpenFGA that questions need.
type openFGAClient interface {
	Check(ctx context.Context, r *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error)
	ReadStoreOwnerTuples(ctx context.Context, storeID string) ([]iam.Tuple, error)
}

// openFGADecider implements [Decider] by OpenFGA. The index decides questions that cannot be sent to OpenFGA.
type openFGADecider struct {
	backend openFGAClient
	// index returns the index of declared objects. An error means that it is unknown.
	index func() (*authz.Index, error)
	// store returns the Store of IAM, or nil.
	store func() *corev1alpha1.Store
	// cluster returns the UID of this cluster, which a store in OpenFGA names as its owner.
	cluster func(context.Context) (string, error)
	seconds *prometheus.HistogramVec
	adopted atomic.Pointer[verifiedOwnership]
	// cache is nil if answers are not cached.
	cache *answerCache
}

// verifiedOwnership records when a store in OpenFGA was verified to belong to this cluster.
type verifiedOwnership struct {
	storeID string
	seen    time.Time
}

// newCheckSeconds returns the metric of the duration of checks.
func newCheckSeconds() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "entail_openfga_check_seconds", Help: "Seconds until OpenFGA answered a check of webhook.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"outcome"})
}

// Decide implements [Decider]. The index provides the proof of a yes, if it has one.
func (o *openFGADecider) Decide(ctx context.Context, q authz.Query) (why authz.Proof, allowed bool, err error) {
	x, err := o.index()
	if err != nil {
		return why, false, err
	}
	allowed, err = o.decideByOpenFGA(ctx, x, q)
	if err != nil || !allowed {
		return why, false, fault.Unavailable(err)
	}
	why, _ = x.Decide(q)
	return why, true, nil
}

func (o *openFGADecider) decideByOpenFGA(ctx context.Context, x *authz.Index, q authz.Query) (bool, error) {
	if q.User != "" && q.Account != "" {
		return false, errTwo
	}
	c, askable := x.ToOpenFGACheck(q)
	parts := c.SplitContext(maxContext) // The parents of an object must be in every part.
	if askable = askable && len(parts[0].Context) <= maxContext && len(parts) <= maxParts; !askable {
		_, declared := x.Decide(q)
		return declared, nil
	}
	store := o.store()
	if store == nil || store.Status.StoreID == "" || store.Status.AuthorizationModelID == "" {
		return false, errNoStore
	}
	if err := o.checkStoreOwner(ctx, store); err != nil {
		return false, err
	}
	key := checkCacheKey(store, c)
	if _, declared := x.Decide(q); o.cache.hasAgreedAnswer(key, declared) {
		return declared, nil
	}
	allowed, err := o.checkParts(ctx, store, parts)
	if now, unknown := o.index(); err == nil && unknown == nil {
		_, declared := now.Decide(q)
		o.cache.storeIfAgreed(key, allowed, declared)
	}
	return allowed, err
}

// checkParts sends the parts of a question until one is allowed.
func (o *openFGADecider) checkParts(ctx context.Context, store *corev1alpha1.Store, parts []iam.OpenFGACheck) (bool, error) {
	for _, part := range parts {
		if allowed, err := o.sendCheck(ctx, store, part); err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}

// sendCheck sends one check. It requires an answer that includes all earlier writes.
func (o *openFGADecider) sendCheck(ctx context.Context, store *corev1alpha1.Store, c iam.OpenFGACheck) (bool, error) {
	links := &openfgav1.ContextualTupleKeys{}
	for _, t := range c.Context {
		links.TupleKeys = append(links.TupleKeys, &openfgav1.TupleKey{User: t.User, Relation: t.Relation, Object: t.Object})
	}
	began := time.Now()
	answer, err := o.backend.Check(ctx, &openfgav1.CheckRequest{
		StoreId: store.Status.StoreID, AuthorizationModelId: store.Status.AuthorizationModelID, ContextualTuples: links,
		TupleKey:    &openfgav1.CheckRequestTupleKey{User: c.User, Relation: c.Relation, Object: c.Object},
		Consistency: openfgav1.ConsistencyPreference_HIGHER_CONSISTENCY,
	})
	outcome := "refused"
	switch {
	case err != nil:
		outcome = "error"
	case answer.GetAllowed():
		outcome = "allowed"
	}
	o.seconds.WithLabelValues(outcome).Observe(time.Since(began).Seconds())
	return err == nil && answer.GetAllowed(), err
}

// checkStoreOwner returns an error if the store belongs to another cluster, because its tuples could allow access that nothing
// here declares.
func (o *openFGADecider) checkStoreOwner(ctx context.Context, store *corev1alpha1.Store) error {
	id := store.Status.StoreID
	if store.Spec.Adoption == corev1alpha1.AdoptionAlways {
		return nil
	}
	if a := o.adopted.Load(); a != nil && a.storeID == id && time.Since(a.seen) < adoptionTTL {
		return nil
	}
	cluster, err := o.cluster(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	named, err := o.backend.ReadStoreOwnerTuples(ctx, id)
	if err != nil {
		return fmt.Errorf("finding the owner of the store: %w", err)
	}
	if ours, _ := iam.CompareStoreOwnerTuples(iam.StoreOwnerTuple(store.Name, cluster), named); !ours {
		return errNotAdopted
	}
	o.adopted.Store(&verifiedOwnership{id, now})
	return nil
}

var (
	_ Decider       = (*openFGADecider)(nil)
	_ openFGAClient = (*fga.Client)(nil)
)
