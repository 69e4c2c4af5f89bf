package webhook

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/fault"
)

// fixedDecider is a decider that answers by the time since it was made.
type fixedDecider func(since time.Duration) (bool, error)

func (s fixedDecider) Decide(ctx context.Context, _ authz.Query) (authz.Proof, bool, error) {
	allowed, err := s(time.Since(ctx.Value(begun{}).(time.Time)))
	return authz.Proof{}, allowed, err
}

type begun struct{}

func TestOpenFGAAllowRequiresIndex(t *testing.T) {
	yes := func(time.Duration) (bool, error) { return true, nil }
	no := func(time.Duration) (bool, error) { return false, nil }
	fails := func(time.Duration) (bool, error) { return false, errDown }
	after := func(d time.Duration, is bool) fixedDecider {
		return func(since time.Duration) (bool, error) { return (since >= d) == is, nil }
	}
	for name, test := range map[string]struct {
		openFGA, index fixedDecider
		allowed, fails bool
	}{
		"both allow":                            {openFGA: yes, index: yes, allowed: true},
		"OpenFGA alone does not":                {openFGA: no, index: yes},
		"the index alone does not":              {openFGA: yes, index: no, fails: true},
		"the index allows a moment later":       {openFGA: yes, index: after(agreement/2, true), allowed: true},
		"OpenFGA follows a moment later":        {openFGA: after(agreement/2, false), index: no},
		"the index allows when nobody waits":    {openFGA: yes, index: after(2*agreement, true), fails: true},
		"the index cannot tell":                 {openFGA: yes, index: fails, fails: true},
		"OpenFGA does not answer":               {openFGA: fails, index: yes, fails: true},
		"OpenFGA has not followed a revocation": {openFGA: after(2*agreement, false), index: no, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.WithValue(t.Context(), begun{}, time.Now())
				_, allowed, err := openFGAAndIndexDecider{test.openFGA, test.index}.Decide(ctx, treeOf("alice"))
				if allowed != test.allowed || (err != nil) != test.fails {
					t.Errorf("got %v, %v", allowed, err)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), begun{}, time.Now()))
	cancel()
	if _, allowed, err := (openFGAAndIndexDecider{fixedDecider(yes), fixedDecider(no)}).Decide(ctx, treeOf("alice")); allowed || !fault.IsUnavailable(err) {
		t.Errorf("without time: got %v, %v", allowed, err)
	}
}
