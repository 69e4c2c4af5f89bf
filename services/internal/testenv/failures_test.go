package testenv

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestFailureInjectorFailsGivenShare(t *testing.T) {
	one, cut := errors.New("one"), errors.New("cut")
	for name, c := range map[string]struct {
		percent int32
		cut     bool
		want    map[error]bool
	}{
		"no call fails":                {0, false, map[error]bool{nil: true}},
		"each call fails":              {100, false, map[error]bool{one: true, cut: true}},
		"some calls fail":              {50, false, map[error]bool{nil: true, one: true, cut: true}},
		"a cut line fails with a cut":  {0, true, map[error]bool{cut: true}},
		"a cut line hides all besides": {100, true, map[error]bool{cut: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &failureInjector{random: rand.New(rand.NewPCG(1, 1))}
			f.percent.Store(c.percent)
			f.cut.Store(c.cut)
			call, got, failed := f.randomFault([]error{one, cut}), map[error]bool{}, int32(0)
			for range 100 {
				err := call(t.Context(), "op")
				if got[err] = true; err != nil && !c.cut {
					failed++
				}
			}
			if len(got) != len(c.want) || f.count.Load() != failed {
				t.Errorf("got %v and %d counted, want %v and %d", got, f.count.Load(), c.want, failed)
			}
			for err := range got {
				if !c.want[err] {
					t.Errorf("got %v, want one of %v", err, c.want)
				}
			}
		})
	}
}

func TestKubeTrafficInjectsAnswers(t *testing.T) {
	reached := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer server.Close()
	for name, c := range map[string]struct {
		fail func(*Traffic, Fault)
		want int
	}{
		"before the server": {(*Traffic).FailBefore, 0},
		"after the server":  {(*Traffic).FailAfter, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reached = 0
			traffic := &Traffic{}
			c.fail(traffic, func(context.Context, string) error { return InjectedResponseError(http.StatusConflict, "{}") })
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := trafficTransport{traffic, http.DefaultTransport}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusConflict || reached != c.want {
				t.Errorf("got status %d, the server reached %d times, want %d and %d", answer.StatusCode, reached, http.StatusConflict, c.want)
			}
		})
	}
}
