package rpc

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	authenticationv1 "k8s.io/api/authentication/v1"
)

func TestCallLimiterServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewCallLimiter(1)
		first, err := turns.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error)
		go func() { _, err := turns.Acquire(ctx); waiting <- err }()
		synctest.Wait()
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("canceled call: got %v", err)
		}
		first()
		if _, err := turns.Acquire(t.Context()); err != nil {
			t.Errorf("a turn that was given back cannot be taken: %v", err)
		}
	})
}

// A caller with many calls waits for its own calls. It does not delay other callers by all its calls.
func TestCallLimiterIsFairBetweenCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		as := func(name string) context.Context {
			return context.WithValue(t.Context(), callerKey{}, authenticatedCaller{user: authenticationv1.UserInfo{Username: name}})
		}
		turns := NewCallLimiter(4)
		var had atomic.Int64
		ends := make(chan func(), 100)
		for range 50 {
			go func() {
				end, err := turns.Acquire(as("mallory"))
				if err != nil {
					t.Error(err)
				}
				had.Add(1)
				ends <- end
			}()
		}
		synctest.Wait()
		for range 2 {
			end, err := turns.Acquire(as("alice"))
			if err != nil {
				t.Fatal(err)
			}
			ends <- end
		}
		if n := had.Load(); n != 2 {
			t.Errorf("mallory has %d turns of 4", n)
		}
		for range 52 {
			(<-ends)()
			synctest.Wait()
		}
		if n := had.Load(); n != 50 {
			t.Errorf("mallory had %d turns", n)
		}
	})
}
