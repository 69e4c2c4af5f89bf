//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// person sends requests to the API server as an impersonated user.
type person struct {
	http *http.Client
	host string
}

// as returns a person, as `kubectl --as` does.
func (m *machine) as(t *testing.T, who rest.ImpersonationConfig) *person {
	t.Helper()
	cfg := rest.CopyConfig(m.config(t))
	cfg.Impersonate = who
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &person{client, cfg.Host}
}

// apply is the method for a server-side apply.
const apply = "APPLY"

// send sends a request, and returns the status code and body.
func (p *person) send(ctx context.Context, request, body string) (code int, answer string, err error) {
	method, path, _ := strings.Cut(request, " ")
	content := map[string]string{http.MethodPatch: "application/merge-patch+json", apply: "application/apply-patch+yaml"}[method]
	if method == apply {
		method = http.MethodPatch
	}
	r, err := http.NewRequestWithContext(ctx, method, p.host+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", cmp.Or(content, "application/json"))
	response, err := p.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, string(data), err
}

// may returns a check whether a request passes authorization, whatever its result.
func (p *person) may(request string, want bool) func(context.Context) error {
	return func(ctx context.Context) error {
		code, answer, err := p.send(ctx, request, "{}")
		if err == nil && (code != http.StatusForbidden) != want {
			err = fmt.Errorf("%s is answered %d, %s", request, code, answer)
		}
		return err
	}
}
