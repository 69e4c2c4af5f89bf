package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// relationHolder is an OpenFGA that holds tuples and allows what they state.
type relationHolder struct {
	OpenFGAClient
	tuples []corev1alpha1.Tuple
	denies bool
	// checks counts the calls of Check.
	checks *int
}

func (h relationHolder) ReadRelationTuples(
	_ context.Context, _ string, filter *openfgav1.ReadRequestTupleKey, _ int,
) (found []*openfgav1.Tuple, more bool, err error) {
	for _, t := range h.tuples {
		if t.Object == filter.GetObject() && t.Relation == filter.GetRelation() && (filter.GetUser() == "" || filter.GetUser() == t.User) {
			found = append(found, &openfgav1.Tuple{Key: tuple.ParseDeclared(t).ToOpenFGA()})
		}
	}
	return found, false, nil
}

func (h relationHolder) Check(_ context.Context, r *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	if h.checks != nil {
		*h.checks++
	}
	held := slices.ContainsFunc(h.tuples, func(t corev1alpha1.Tuple) bool {
		return t.Object == r.GetTupleKey().GetObject() && t.User == r.GetTupleKey().GetUser()
	})
	return &openfgav1.CheckResponse{Allowed: (held || len(r.GetContextualTuples().GetTupleKeys()) > 0) && !h.denies}, nil
}

// originText returns the origin of the only tuple in a tree.
func originText(m *tuplev1.Decision) string {
	for _, child := range m.GetChildren() {
		if text := originText(child); text != "" {
			return text
		}
	}
	if m.GetTuple() == nil {
		return ""
	}
	text := strings.TrimPrefix(m.GetOrigin().String(), "ORIGIN_")
	for _, o := range m.GetTuple().GetOwners() {
		text += fmt.Sprintf(" %s/%s %s", o.GetKind(), o.GetName(), o.GetField())
	}
	return text
}

func TestTreesNameObjectsThatDeclareTheirTuples(t *testing.T) {
	w := newQueryFixture(t)
	three, four, five := two, two, two
	three.Object, four.Object, five.Object = "doc:3", "doc:4", "doc:5"
	w.store("a", corev1alpha1.StoreStatus{StoreID: "S1", AuthorizationModelID: "model", ManagedTuples: []corev1alpha1.Tuple{one}}, two, one)
	w.module("m", "a", []corev1alpha1.Tuple{one, three}, one)
	held := relationHolder{tuples: []corev1alpha1.Tuple{one, three, four}}
	for name, test := range map[string]struct {
		asked corev1alpha1.Tuple
		given []*tuplev1.TupleKey
		want  string
	}{
		"declared by two": {one, nil, "DECLARED Store/a spec.tuples[1] AuthorizationModel/m spec.tuples[0]"},
		"recorded":        {three, nil, "LEAVING"},
		"of others":       {four, nil, "UNMANAGED"},
		"of the request":  {five, []*tuplev1.TupleKey{{Object: five.Object, Relation: five.Relation, User: five.User}}, "REQUEST"},
	} {
		answer, err := w.server(held).ExplainCheck(t.Context(), &tuplev1.ExplainCheckRequest{
			Store: "a", Key: &tuplev1.TupleKey{Object: test.asked.Object, Relation: test.asked.Relation, User: test.asked.User}, ContextualTuples: test.given,
		})
		if err != nil || !answer.GetAllowed() || answer.GetTree().GetAnswer() != tuplev1.Decision_ANSWER_YES {
			t.Errorf("%s: got %v, %v, want yes", name, answer, err)
		}
		if got := originText(answer.GetTree()); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestTreeThatDiffersFromAnswerIsUndecided(t *testing.T) {
	checks := 0
	s := newQueryFixture(t, one).server(relationHolder{tuples: []corev1alpha1.Tuple{one}, denies: true, checks: &checks})
	_, err := s.ExplainCheck(t.Context(), &tuplev1.ExplainCheckRequest{Store: "a", Key: viewerKey})
	if connect.CodeOf(err) != connect.CodeAborted || checks != maxExplanations {
		t.Errorf("got %v after %d checks, want Aborted after %d", err, checks, maxExplanations)
	}
}

func TestWaitsDoNotHoldTreeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiObjects{new(sync.Map)}
		api.set(kinds.Stores(), "a", "1", metav1.ConditionFalse, 2)
		s := newQueryFixture(t, one).server(relationHolder{tuples: []corev1alpha1.Tuple{one}})
		s.cfg.Kube = api
		for range maxTrees {
			go func() {
				_, _ = s.ExplainCheck(t.Context(), &tuplev1.ExplainCheckRequest{Store: "a", Key: viewerKey, After: "store/a"})
			}()
		}
		synctest.Wait()
		started := time.Now()
		if _, err := s.ExplainCheck(t.Context(), &tuplev1.ExplainCheckRequest{Store: "a", Key: viewerKey}); err != nil || time.Since(started) > 0 {
			t.Errorf("got %v after %s, want an answer at once", err, time.Since(started))
		}
	})
}

// cancelingHolder cancels the call while a tree is built.
type cancelingHolder struct {
	relationHolder
	cancel context.CancelFunc
}

func (h cancelingHolder) ReadRelationTuples(
	context.Context, string, *openfgav1.ReadRequestTupleKey, int,
) (found []*openfgav1.Tuple, more bool, err error) {
	h.cancel()
	return nil, false, context.Canceled
}

func TestEndOfCallIsNotRefusalOfOpenFGA(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newQueryFixture(t, one).server(cancelingHolder{relationHolder{tuples: []corev1alpha1.Tuple{one}}, cancel})
	if _, err := s.ExplainCheck(ctx, &tuplev1.ExplainCheckRequest{Store: "a", Key: viewerKey}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestFieldOfTupleCountsEveryEntry(t *testing.T) {
	list := []corev1alpha1.Tuple{one, one, two}
	if got := fieldOfTuple(list, tuple.ParseDeclared(two)); got != "spec.tuples[2]" {
		t.Errorf("got %s, want spec.tuples[2]", got)
	}
	if got := fieldOfTuple(list[:2], tuple.ParseDeclared(two)); got != "" {
		t.Errorf("got %s, want none", got)
	}
}
