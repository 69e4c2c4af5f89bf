package admission

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"net/http"
	"strings"
	"time"
)

// pathPeriod is the lifetime of a registered path. A path can leak, for example in the API server's error after a
// failed call. It is useless after twice the period.
const pathPeriod = 10 * time.Minute

const (
	// seedKey is the key of the seed in the Secret of the certificate.
	seedKey  = "seed"
	seedSize = sha256.Size
)

// newPathSeed returns a random seed. Replicas share it, and it outlives certificates.
func newPathSeed() []byte {
	seed := make([]byte, seedSize)
	_, _ = rand.Read(seed) // Never fails.
	return seed
}

// pathSecret returns the secret part of the path for a period. Only the API server can read it.
func (c *servingCertificate) pathSecret(at time.Time) string {
	mac := hmac.New(sha256.New, c.seed)
	mac.Write([]byte(at.Truncate(pathPeriod).UTC().Format(time.RFC3339)))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)))
}

// webhookPath returns the path of a webhook.
func (c *servingCertificate) webhookPath(webhook string, at time.Time) string {
	return "/" + c.pathSecret(at) + "/" + webhook
}

// matchesPathSecret reports whether a request has the path of this or an adjacent period. The API server can receive the newest
// path late, or from a replica whose clock is ahead.
func (c *servingCertificate) matchesPathSecret(caller string, now time.Time) bool {
	is := 0
	for _, at := range []time.Time{now.Add(-pathPeriod), now, now.Add(pathPeriod)} {
		is |= subtle.ConstantTimeCompare([]byte(caller), []byte(c.pathSecret(at)))
	}
	return is == 1
}

// newWebhookRouter passes requests of the API server to their webhook. For all others it returns 404 without reading the body.
func (s *Server) newWebhookRouter() http.Handler {
	handlers := map[string]http.Handler{}
	for _, webhook := range s.options.Webhooks {
		handlers[webhook.Name] = s.webhookHandler(webhook)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, webhook, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		handler, ok := handlers[webhook]
		if !s.isFromAPIServer(caller) || !ok || r.Method != http.MethodPost {
			w.Header().Set("Connection", "close")
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// isFromAPIServer reports whether a request comes from the API server. It accepts the paths of the next certificate as well.
// If the Secret was replaced, their seed is new and registered before the certificate is served.
func (s *Server) isFromAPIServer(caller string) bool {
	for _, c := range []*servingCertificate{s.serving.Load(), s.next.Load()} {
		if c != nil && c.matchesPathSecret(caller, time.Now()) {
			return true
		}
	}
	return false
}
