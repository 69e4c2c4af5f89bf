package verify

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

const cluster = "local"

// verifierEnv holds an informer with one AuthorizationModel, and an API server that returns another state of it, or
// none.
type verifierEnv struct {
	*Verifier

	t       *testing.T
	models  *informer.Lister[corev1alpha1.AuthorizationModel]
	metrics *prometheus.Registry
	is      event.Change
	reads   int
}

func newVerifierEnv(t *testing.T) *verifierEnv {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	v := informer.New(informer.Config{Log: log})
	b := &verifierEnv{t: t, metrics: prometheus.NewRegistry()}
	b.models = informer.RegisterLister[corev1alpha1.AuthorizationModel](v, kinds.AuthorizationModels(), nil)
	b.Verifier = New(v, b, cluster, log, b.metrics)
	return b
}

// ReadNewest returns the state at the API server.
func (b *verifierEnv) ReadNewest(_ context.Context, _ kinds.Kind, c event.Change) (event.Change, error) {
	if b.reads++; b.is.UID == "" {
		c.Deleted = true
		return c, nil
	}
	return b.is, nil
}

func key() event.Key {
	return event.Key{Cluster: cluster, GroupResource: kinds.AuthorizationModels().GroupResource, Name: "m"}
}

// state returns a state of the object.
func state(t *testing.T, version int, uid, text string) event.Change {
	t.Helper()
	kind := kinds.AuthorizationModels()
	m := corev1alpha1.AuthorizationModel{
		TypeMeta:   metav1.TypeMeta{APIVersion: kind.Group + "/" + kind.Version, Kind: kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: "m", UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)},
		Spec:       corev1alpha1.AuthorizationModelSpec{Model: text},
	}
	object, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return event.Change{Key: key(), Version: kind.Version, UID: uid, ResourceVersion: strconv.Itoa(version), Object: object}
}

// put stores a state in the informer.
func (b *verifierEnv) put(c event.Change) event.Change {
	b.t.Helper()
	if err := b.view.Apply(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *verifierEnv) drop(version int, uid, text string) {
	b.t.Helper()
	c := state(b.t, version, uid, text)
	c.Deleted = true
	b.put(c)
}

func (b *verifierEnv) expected() ExpectedState {
	o, _ := b.models.GetOrTombstone(key())
	o.Key = key()
	return NewExpectedState(o, func(m *corev1alpha1.AuthorizationModel) (declared, recorded any) { return m.Spec.Model, m.Status.Live })
}

// contradicted returns the value of the metric.
func (b *verifierEnv) contradicted() (times float64) {
	families, err := b.metrics.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			times += m.GetCounter().GetValue()
		}
	}
	return times
}

func TestVerifyReturnsStaleUnlessAPIServerReturnsExpectedState(t *testing.T) {
	for name, test := range map[string]struct {
		arrange      func(b *verifierEnv)
		want         error
		contradicted float64
	}{
		"same":                      {func(b *verifierEnv) { b.is = b.put(state(b.t, 1, "a", "x")) }, nil, 0},
		"same fields, newer":        {func(b *verifierEnv) { b.put(state(b.t, 1, "a", "x")); b.is = state(b.t, 2, "a", "x") }, nil, 0},
		"view newer":                {func(b *verifierEnv) { b.is = b.put(state(b.t, 1, "a", "x")); b.put(state(b.t, 2, "a", "y")) }, reconcile.ErrStale, 1},
		"view far newer":            {func(b *verifierEnv) { b.is = b.put(state(b.t, 1, "a", "x")); b.put(state(b.t, 900000, "a", "y")) }, reconcile.ErrStale, 1},
		"other content":             {func(b *verifierEnv) { b.put(state(b.t, 1, "a", "x")); b.is = state(b.t, 1, "a", "y") }, reconcile.ErrStale, 1},
		"view lags":                 {func(b *verifierEnv) { b.put(state(b.t, 1, "a", "x")); b.is = state(b.t, 2, "a", "y") }, reconcile.ErrStale, 0},
		"other UID":                 {func(b *verifierEnv) { b.put(state(b.t, 1, "a", "x")); b.is = state(b.t, 2, "b", "x") }, reconcile.ErrStale, 0},
		"absent at the server":      {func(b *verifierEnv) { b.put(state(b.t, 1, "a", "x")) }, reconcile.ErrStale, 0},
		"deleted in the view alone": {func(b *verifierEnv) { b.is = b.put(state(b.t, 1, "a", "x")); b.drop(2, "a", "x") }, reconcile.ErrStale, 1},
		"deleted":                   {func(b *verifierEnv) { b.put(state(b.t, 1, "a", "x")); b.drop(2, "a", "x") }, nil, 0},
		"created again": {func(b *verifierEnv) {
			b.put(state(b.t, 1, "a", "x"))
			b.drop(2, "a", "x")
			b.is = state(b.t, 3, "b", "x")
		}, reconcile.ErrStale, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newVerifierEnv(t)
			test.arrange(b)
			if err := b.Verify(t.Context(), b.expected()); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if got := b.contradicted(); got != test.contradicted {
				t.Errorf("got %v contradictions, want %v", got, test.contradicted)
			}
			if err := b.Verify(t.Context(), b.expected()); err != nil || b.reads != 2 {
				t.Errorf("the view does not hold the returned state: %v after %d reads", err, b.reads)
			}
		})
	}
}

func TestVerifyDoesNotReadObjectOfAnotherCluster(t *testing.T) {
	b := newVerifierEnv(t)
	c := state(t, 1, "a", "x")
	c.Key.Cluster = "east"
	b.put(c)
	o, _ := b.models.Get(c.Key)
	err := b.Verify(t.Context(), NewExpectedState(o, func(m *corev1alpha1.AuthorizationModel) (declared, recorded any) { return m.Spec, nil }))
	if !errors.Is(err, ErrContradicted) || !fault.IsUnavailable(err) || b.reads != 0 {
		t.Errorf("got %v after %d reads, want %v after none", err, b.reads, ErrContradicted)
	}
}

func TestVerifyWriteAnswerReturnsStaleIfDeclaredFieldsDiffer(t *testing.T) {
	for name, test := range map[string]struct {
		answer event.Change
		want   error
	}{
		"same fields": {state(t, 2, "a", "x"), nil},
		"other text":  {state(t, 2, "a", "y"), reconcile.ErrStale},
		"other UID":   {state(t, 2, "b", "x"), reconcile.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			b := newVerifierEnv(t)
			b.put(state(t, 1, "a", "x"))
			err := b.VerifyWriteAnswer(t.Context(), b.expected(), test.answer)
			if !errors.Is(err, test.want) || (b.contradicted() > 0) != (test.want != nil) || b.reads != 0 {
				t.Errorf("got %v, %v contradictions, %d reads, want %v and no read", err, b.contradicted(), b.reads, test.want)
			}
		})
	}
}
