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

// pathPeriod is the time after which a new path is registered. A path can leak, for example in the API server's error
// after a failed call. Each path stops working after at most two more periods.
const pathPeriod = 10 * time.Minute

const (
	// seedKey is the key of the seed in the Secret of the certificate.
	seedKey  = "seed"
	seedSize = sha256.Size
)

// newPathSeed returns a random seed. Replicas share the seed, and a new certificate keeps it.
func newPathSeed() []byte {
	seed := make([]byte, seedSize)
	_, _ = rand.Read(seed) // Read returns no error.
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

// matchesPathSecret reports whether the path of a request belongs to this period, the previous or the next one. The
// API server may use the previous path for a while, and another replica's clock may be ahead.
func (c *servingCertificate) matchesPathSecret(secret string, now time.Time) bool {
	is := 0
	for _, at := range []time.Time{now.Add(-pathPeriod), now, now.Add(pathPeriod)} {
		is |= subtle.ConstantTimeCompare([]byte(secret), []byte(c.pathSecret(at)))
	}
	return is == 1
}

// newWebhookRouter passes requests of the API server to their webhook. It answers all other requests with 404 without
// reading the body.
func (s *Server) newWebhookRouter() http.Handler {
	handlers := map[string]http.Handler{}
	for _, webhook := range s.options.Webhooks {
		handlers[webhook.Name] = s.webhookHandler(webhook)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, webhook, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		handler, ok := handlers[webhook]
		if !s.isAPIServerPathSecret(caller) || !ok || r.Method != http.MethodPost {
			w.Header().Set("Connection", "close")
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// isAPIServerPathSecret reports whether a request comes from the API server. It also accepts the paths of the next
// certificate. If the Secret was replaced, these paths have another seed and are registered before the certificate is
// served.
func (s *Server) isAPIServerPathSecret(secret string) bool {
	for _, c := range []*servingCertificate{s.serving.Load(), s.next.Load()} {
		if c != nil && c.matchesPathSecret(secret, time.Now()) {
			return true
		}
	}
	return false
}
