package fga_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// tokenIssuer issues tokens to clients with the right secret.
type tokenIssuer struct {
	mu       sync.Mutex
	secret   string
	lifetime int
	asked    int
	form     string
	url      string
}

func newTokenIssuer(t *testing.T, secret string) *tokenIssuer {
	t.Helper()
	i := &tokenIssuer{secret: secret, lifetime: 3600}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.url = server.URL + "/oauth/token"
	return i
}

func (i *tokenIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	_ = r.ParseForm()
	i.form = r.Form.Encode()
	w.Header().Set("Content-Type", "application/json")
	if id, secret, _ := r.BasicAuth(); id != "entail" || secret != i.secret {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":"invalid_client","error_description":"%s is wrong"}`, secret)
		return
	}
	fmt.Fprintf(w, `{"access_token":"token-of-%s","token_type":"Bearer","expires_in":%d}`, i.secret, i.lifetime)
}

func (i *tokenIssuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// serverConfigAcceptingToken returns a server configuration that accepts only the present token.
func serverConfigAcceptingToken(token func() string) embedded.OpenFGAConfig {
	return embedded.OpenFGAConfig{ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			if got := md.Get("authorization"); len(got) != 1 || got[0] != "Bearer "+token() {
				return nil, status.Error(codes.Unauthenticated, "unauthenticated")
			}
			return next(ctx, req)
		},
	)}}
}

func TestOAuthTokenSourceCachesToken(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		i := newTokenIssuer(t, "one")
		file := filepath.Join(t.TempDir(), "secret")
		replaceFileContent(t, file, "one\n")
		client := over.dial(t, serverConfigAcceptingToken(func() string { return "token-of-one" }), fga.Config{
			ClientID: "entail", ClientSecretFile: file, TokenURL: i.url, Audience: "https://fga.example", Scopes: []string{"read", "write"},
		})
		for range 20 {
			if _, err := client.CreateStore(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
		}
		const want = "audience=https%3A%2F%2Ffga.example&grant_type=client_credentials&scope=read+write"
		i.set(func() {
			if i.asked != 1 || i.form != want {
				t.Errorf("got %d token requests, the last for %s", i.asked, i.form)
			}
		})
	})
}

func TestOAuthTokenSourceRereadsSecretFile(t *testing.T) {
	everyAPI(t, func(t *testing.T, over api) {
		i := newTokenIssuer(t, "one")
		i.lifetime = 1 // Such a token expires before a second call.
		file := filepath.Join(t.TempDir(), "secret")
		replaceFileContent(t, file, "one")
		accepted := func() (token string) {
			i.set(func() { token = "token-of-" + i.secret })
			return token
		}
		client := over.dial(t, serverConfigAcceptingToken(accepted), fga.Config{ClientID: "entail", ClientSecretFile: file, TokenURL: i.url})
		if _, err := client.CreateStore(t.Context(), "test"); err != nil {
			t.Fatal(err)
		}
		i.set(func() { i.secret = "two" })
		_, err := client.CreateStore(t.Context(), "test")
		if !fault.IsUnavailable(err) || strings.Contains(err.Error(), "one") {
			t.Errorf("with the old secret: %v; want unavailable, and no word of the secret", err)
		}
		replaceFileContent(t, file, "two")
		testenv.Eventually(t, time.Minute, func() error {
			_, err := client.CreateStore(t.Context(), "test")
			return err
		})
	})
}
