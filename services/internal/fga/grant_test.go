package fga

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
)

// fakeIssuer imitates a token issuer.
type fakeIssuer struct {
	asked  int
	answer func(r *http.Request) (status int, body string)
}

func (i *fakeIssuer) RoundTrip(r *http.Request) (*http.Response, error) {
	i.asked++
	code, body := i.answer(r)
	if code == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func issueToken(t *testing.T, answer func(r *http.Request) (status int, body string)) (*oauthTokenSource, *fakeIssuer) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("0penSesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := &fakeIssuer{answer: answer}
	g, err := newOAuthTokenSource(Config{ClientID: "x", TokenURL: "https://issuer?key=0penSesame", ClientSecretFile: file}, &http.Client{Transport: i})
	if err != nil {
		t.Fatal(err)
	}
	return g, i
}

func TestOAuthTokenSourceReplacesExpiredOrRefusedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, i := issueToken(t, func(*http.Request) (int, string) { return 200, `{"access_token":"a","expires_in":3600}` })
		for _, step := range []struct {
			name   string
			after  time.Duration
			forget bool
			asked  int
		}{
			{name: "first", asked: 1},
			{name: "kept", after: 50 * time.Minute, asked: 1},
			{name: "expired", after: 20 * time.Minute, asked: 2},
			{name: "refused at once", forget: true, asked: 2},
			{name: "refused later", after: time.Minute, forget: true, asked: 3},
		} {
			backoff.Sleep(t.Context(), step.after)
			if step.forget {
				g.forgetToken()
			}
			if token, err := g.getToken(t.Context()); err != nil || token != "a" || i.asked != step.asked {
				t.Errorf("%s: got %s, %v after %d requests, want %d", step.name, token, err, i.asked, step.asked)
			}
		}
	})
}

func TestOAuthTokenSourceUsesShortLivedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, i := issueToken(t, func(*http.Request) (int, string) { return 200, `{"access_token":"a","expires_in":5}` })
		for second := range 3 {
			for range 10 {
				if token, err := g.getToken(t.Context()); err != nil || token != "a" || i.asked != second+1 {
					t.Fatalf("got %q, %v after %d requests, want a after %d", string(token), err, i.asked, second+1)
				}
			}
			backoff.Sleep(t.Context(), issuerPause)
		}
	})
}

func TestOAuthTokenSourceBacksOffAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, i := issueToken(t, func(*http.Request) (int, string) {
			return 401, `{"error":"invalid_client","error_description":"0penSesame?"}`
		})
		for range 10 {
			_, err := g.getToken(t.Context())
			if err == nil || !strings.Contains(err.Error(), "invalid_client") || strings.Contains(err.Error(), "0penSesame") {
				t.Fatalf("got %v", err)
			}
		}
		before := i.asked
		if before > 2 { // one request for each way to send the secret
			t.Errorf("got %d parallel requests", before)
		}
		backoff.Sleep(t.Context(), issuerPause+1)
		i.answer = func(*http.Request) (int, string) { return 200, `{"access_token":"a"}` }
		if token, err := g.getToken(t.Context()); err != nil || token != "a" {
			t.Errorf("after that: %s, %v", token, err)
		}
	})
}

func TestOAuthTokenSourceWaitHonorsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, i := issueToken(t, func(*http.Request) (int, string) { return 0, "" })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		failures := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := g.getToken(ctx)
				failures <- err
			}()
		}
		for range 2 {
			if err := <-failures; !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "0penSesame") {
				t.Errorf("got %v", err)
			}
		}
		i.answer = func(*http.Request) (int, string) { return 200, `{"access_token":"a"}` }
		if token, err := g.getToken(t.Context()); err != nil || token != "a" {
			t.Errorf("the next: %s, %v", token, err)
		}
	})
}
