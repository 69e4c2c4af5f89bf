//go:build integration

package impliedrole_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// refusingTransport refuses changes of one binding.
type refusingTransport struct {
	next   http.RoundTripper
	name   string
	refuse func(*http.Request) (*http.Response, error)
	on     *atomic.Bool
	tried  *atomic.Int32
}

// RoundTrip refuses the request or sends it on.
func (o refusingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if o.on.Load() && r.Method != http.MethodGet && (strings.HasSuffix(r.URL.Path, "/"+o.name) || isCreateOfBinding(r, o.name)) {
		o.tried.Add(1)
		return o.refuse(r)
	}
	return o.next.RoundTrip(r)
}

// answer returns a response of the API server with the status.
func answer(r *http.Request, status apierrors.APIStatus) (*http.Response, error) {
	s := status.Status()
	s.Kind, s.APIVersion = "Status", "v1"
	body, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: int(s.Code), Request: r, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

// isCreateOfBinding reports whether a request creates a RoleBinding, with this name unless the name is empty.
func isCreateOfBinding(r *http.Request, name string) bool {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/rolebindings") {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	data, err := io.ReadAll(body)
	return err == nil && strings.Contains(string(data), name)
}

// obstruct starts a service that cannot change a binding while on is true. It counts the attempts.
func (b *testEnv) obstruct(name string, refuse func(*http.Request) (*http.Response, error)) (on *atomic.Bool, tried *atomic.Int32) {
	b.T.Helper()
	on, tried = &atomic.Bool{}, &atomic.Int32{}
	on.Store(true)
	b.serveWith(func(c *impliedrole.Config) {
		c.Embed.Kube.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return refusingTransport{next, name, refuse, on, tried}
		})
	})
	return on, tried
}

func TestApplyPlansAddsBeforeItRemoves(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	r := b.serve()
	b.do("a>b c>b B1=a{u}")
	b.becomes("B1:b{u}")
	r.Stop()
	b.do("B2=c{u} B1=a{v}")
	on, tried := b.obstruct(name("B2", "b"), func(*http.Request) (*http.Response, error) { return nil, errors.New("cut on purpose") })
	testenv.Eventually(t, soon, func() error {
		if tried.Load() < 4 {
			return fmt.Errorf("only %d attempts", tried.Load())
		}
		return nil
	})
	has := grants{}
	for _, binding := range b.allBindings() {
		has.add(roleOf(binding), binding.Subjects)
	}
	for _, who := range []string{"u", "v"} {
		if _, ok := has[grant{role("b"), subject(who)}]; !ok {
			t.Errorf("%s lacks role b: generated bindings %s", who, b.generated())
		}
	}
	b.condition("c>b", "Synced", "Pending")
	on.Store(false)
	b.becomes("B1:b{v} B2:b{u}")
}

// calms waits until attempts are at least one second apart.
func (b *testEnv) calms(tried *atomic.Int32) {
	b.T.Helper()
	const seldom = time.Second
	last, since := tried.Load(), time.Now()
	testenv.Eventually(b.T, soon, func() error {
		if now := tried.Load(); now != last {
			last, since = now, time.Now()
		}
		if last == 0 || time.Since(since) < seldom {
			return fmt.Errorf("got %d attempts", last)
		}
		return nil
	})
}

func TestApplyPlansReportsRefusalAndContinues(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	on, tried := b.obstruct(name("B1", "b"), func(r *http.Request) (*http.Response, error) {
		return answer(r, apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "x", errors.New("attempting to grant more than it has")))
	})
	b.do("a>b a>c x>y B1=a{u} B2=x{v}")
	testenv.Eventually(t, soon, func() error {
		if got := b.generated(); got != "B1:c{u} B2:y{v}" {
			return fmt.Errorf("generated %q", got)
		}
		return nil
	})
	if c := b.condition("a>b", "Synced", "Forbidden"); !strings.Contains(c.Message, "attempting to grant more") || !strings.Contains(c.Message, name("B1", "b")) {
		t.Errorf("message %q", c.Message)
	}
	b.condition("a>c", "Synced", "Synced")
	b.condition("x>y", "Synced", "Synced")
	b.calms(tried)
	on.Store(false)
	b.becomes("B1:b{u} B1:c{u} B2:y{v}")
}
