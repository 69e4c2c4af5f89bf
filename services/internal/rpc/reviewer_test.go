package rpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/services/internal/fault"
)

func emptyReviewer(size int) *accessReviewer {
	return &accessReviewer{answers: cache.NewLRUExpireCache(size), slots: semaphore.NewWeighted(maxQuestions)}
}

// countCalls returns a function that counts its calls. Its answer is valid for a minute.
func countCalls(asked *atomic.Int32, answer string, err error) func(context.Context) (string, time.Duration, error) {
	return func(context.Context) (string, time.Duration, error) {
		asked.Add(1)
		<-time.After(time.Second) // synthetic time
		return answer, time.Minute, err
	}
}

func TestReviewIsCachedForItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, asked := emptyReviewer(10), &atomic.Int32{}
		ask := func() {
			if answer, err := cachedReview(t.Context(), r, "who", countCalls(asked, "alice", nil)); answer != "alice" || err != nil {
				t.Errorf("got %q, %v", answer, err)
			}
		}
		var together sync.WaitGroup
		for range 50 {
			together.Go(ask)
		}
		together.Wait()
		ask()
		if asked.Load() != 1 {
			t.Fatalf("got %d reviews for 51 calls, want 1", asked.Load())
		}
		<-time.After(2 * time.Minute)
		ask()
		if asked.Load() != 2 {
			t.Fatalf("got %d reviews after the answer expired, want 2", asked.Load())
		}
	})
}

func TestReviewFailureIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, asked, down := emptyReviewer(10), &atomic.Int32{}, fault.Unavailable(errors.New("down"))
		if _, err := cachedReview(t.Context(), r, "who", countCalls(asked, "", down)); !fault.IsUnavailable(err) {
			t.Fatalf("got %v", err)
		}
		if answer, err := cachedReview(t.Context(), r, "who", countCalls(asked, "alice", nil)); answer != "alice" || err != nil {
			t.Fatalf("got %q, %v once it is up", answer, err)
		}
	})
}

func TestReviewSurvivesCanceledCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, asked := emptyReviewer(10), &atomic.Int32{}
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := cachedReview(impatient, r, "who", countCalls(asked, "alice", nil)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the impatient one got %v", err)
			}
		})
		synctest.Wait()
		both.Go(func() {
			if answer, err := cachedReview(t.Context(), r, "who", countCalls(asked, "alice", nil)); answer != "alice" || err != nil {
				t.Errorf("the patient one got %q, %v", answer, err)
			}
		})
		both.Wait()
		if asked.Load() != 1 {
			t.Errorf("got %d reviews", asked.Load())
		}
	})
}

func TestReviewCacheAndConcurrencyAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := emptyReviewer(5)
		var now atomic.Int32
		var all sync.WaitGroup
		for i := range 3 * maxQuestions {
			all.Go(func() {
				_, err := cachedReview(t.Context(), r, i, func(context.Context) (int, time.Duration, error) {
					now.Add(1)
					defer now.Add(-1)
					<-time.After(time.Second) // synthetic time
					return i, time.Minute, nil
				})
				if err != nil {
					t.Errorf("question %d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		if now.Load() != maxQuestions {
			t.Errorf("%d questions at a time, want %d", now.Load(), maxQuestions)
		}
		all.Wait()
		if kept := len(r.answers.Keys()); kept != 5 {
			t.Errorf("%d answers kept, want 5", kept)
		}
	})
}

func TestCallWithoutTokenIsNotReviewed(t *testing.T) {
	tr := serve(t, func(c *Config) { c.Auth, c.Kube = AuthKubernetes, &rest.Config{Host: "127.0.0.1:1"} }, fakeStoreService{}.handler())
	for name, value := range map[string]string{"none": "", "basic": "Basic YWxpY2U6c2VjcmV0", "empty": "Bearer ", "bare": "abc"} {
		request := connect.NewRequest(&storev1.GetStoreRequest{Name: "demo"})
		request.Header().Set("Authorization", value)
		client := connect.NewClient[storev1.GetStoreRequest, storev1.GetStoreResponse](tr.client, tr.url+"/entail.store.v1.StoreService/GetStore")
		if _, err := client.CallUnary(t.Context(), request); connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("%s: caller reads %v", name, err)
		}
	}
}

func TestUnreachableAPIServerIsUnavailable(t *testing.T) {
	tr := serve(t, func(c *Config) { c.Auth, c.Kube = AuthKubernetes, &rest.Config{Host: "http://127.0.0.1:1"} }, fakeStoreService{}.handler())
	request := connect.NewRequest(&storev1.GetStoreRequest{Name: "demo"})
	request.Header().Set("Authorization", "Bearer secret-of-alice")
	client := connect.NewClient[storev1.GetStoreRequest, storev1.GetStoreResponse](tr.client, tr.url+"/entail.store.v1.StoreService/GetStore")
	_, err := client.CallUnary(t.Context(), request)
	if connect.CodeOf(err) != connect.CodeUnavailable {
		t.Fatalf("caller reads %v", err)
	}
	tr.log.mustHold(t, "connection refused")
	tr.log.mustNotHold(t, "secret-of-alice")
}

func TestAuthModeNoneRequiresLoopback(t *testing.T) {
	everywhere := &net.TCPAddr{IP: net.IPv4zero, Port: 80}
	if AuthNone.checkAddress(everywhere) == nil || AuthKubernetes.checkAddress(everywhere) != nil {
		t.Error("guard lets the wrong one through")
	}
	for _, address := range []string{"127.0.0.1", "127.8.8.8", "::1"} {
		if err := AuthNone.checkAddress(&net.TCPAddr{IP: net.ParseIP(address)}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	if AuthNone.checkAddress(&net.UnixAddr{Name: "socket"}) == nil {
		t.Error("guard takes a socket for loopback")
	}
}
