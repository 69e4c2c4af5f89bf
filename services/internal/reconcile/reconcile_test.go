package reconcile_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

func TestRetryWhileStaleRetriesErrStaleOnly(t *testing.T) {
	other := errors.New("another")
	stale := fmt.Errorf("writing: %w", reconcile.ErrStale)
	for name, c := range map[string]struct {
		errs []error
		want error
	}{
		"at once":          {[]error{nil}, nil},
		"after others":     {[]error{stale, stale, nil}, nil},
		"another error":    {[]error{other}, other},
		"stale, then that": {[]error{stale, other}, other},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			err := reconcile.RetryWhileStale(event.Key{Name: "x"}, func() error { tries++; return c.errs[tries-1] })
			if !errors.Is(err, c.want) || tries != len(c.errs) {
				t.Errorf("%v after %d tries", err, tries)
			}
		})
	}
}

func TestRetryWhileStaleGivesUpAsUnavailable(t *testing.T) {
	tries := 0
	err := reconcile.RetryWhileStale(event.Key{GroupResource: event.GroupResource{Resource: "stores"}, Name: "x"}, func() error { tries++; return reconcile.ErrStale })
	if !fault.IsUnavailable(err) || !errors.Is(err, reconcile.ErrStale) || tries != 8 {
		t.Errorf("%v after %d tries", err, tries)
	}
	if want := "stores/x: objects keep changing"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}
