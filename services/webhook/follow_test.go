package webhook

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
)

// slow is a backend that answers yes to everything until a time.
type slow struct {
	openFGAClient

	until time.Time
}

func (s slow) Check(context.Context, *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	return &openfgav1.CheckResponse{Allowed: time.Now().Before(s.until)}, nil
}

// TestMinimumStateWaitsForOpenFGA verifies that a question after a revocation gets no yes while
// OpenFGA lags behind.
func TestMinimumStateWaitsForOpenFGA(t *testing.T) {
	revision, object := &accessv1.AtLeast{Revision: "1"}, &accessv1.AtLeast{Object: &eventv1.ObjectRef{Name: "x"}}
	for what, c := range map[string]struct {
		least *accessv1.AtLeast
		// after is the time after which OpenFGA answers no. The index does so from the start.
		after   time.Duration
		allowed bool
		code    connect.Code
	}{
		"nothing":                  {nil, time.Second, true, 0},
		"a revision":               {revision, time.Second, false, 0},
		"an object":                {object, time.Second, false, 0},
		"a revision for very long": {revision, time.Hour, false, connect.CodeUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			o, _ := asking(&answers{})
			o.backend = slow{o.backend, time.Now().Add(c.after)}
			x, _ := o.index()
			_, allowed, err := decideAtMinimumState(t.Context(), o, x, treeOf("alice"), c.least)
			if allowed != c.allowed || err == nil != (c.code == 0) || err != nil && connect.CodeOf(err) != c.code {
				t.Errorf("%s: %v, %v", what, allowed, err)
			}
		})
	}
	a := &answers{allowed: true, unanswered: errDown}
	o, _ := asking(a)
	x, _ := o.index()
	if _, allowed, err := decideAtMinimumState(t.Context(), o, x, treeOf("alice"), revision); allowed || err == nil || len(a.asked) != 1 {
		t.Errorf("OpenFGA down: got %v, %v after %d calls", allowed, err, len(a.asked))
	}
}
