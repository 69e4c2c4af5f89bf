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

// pathPeriod is for how long one path is registered. Who gets to see it, as in what the API server
// tells a person when nobody answered, has no use of it after twice that.
const pathPeriod = 10 * time.Minute

const (
	// seedKey is where the Secret of the certificate has the seed.
	seedKey  = "seed"
	seedSize = sha256.Size
)

// newSeed makes what paths come from. Replicas share it, and it outlives certificates.
func newSeed() []byte {
	seed := make([]byte, seedSize)
	_, _ = rand.Read(seed) // Never fails.
	return seed
}

// caller is what the path begins with that is registered in a period: who knows it is the API server.
func (c *certificate) caller(at time.Time) string {
	mac := hmac.New(sha256.New, c.seed)
	mac.Write([]byte(at.Truncate(pathPeriod).UTC().Format(time.RFC3339)))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)))
}

// path is where a webhook is asked.
func (c *certificate) path(webhook string, at time.Time) string {
	return "/" + c.caller(at) + "/" + webhook
}

// calledBy reports whether a caller is the API server: it may have heard of the newest path late, or
// from a replica whose clock is ahead.
func (c *certificate) calledBy(caller string, now time.Time) bool {
	is := 0
	for _, at := range []time.Time{now.Add(-pathPeriod), now, now.Add(pathPeriod)} {
		is |= subtle.ConstantTimeCompare([]byte(caller), []byte(c.caller(at)))
	}
	return is == 1
}

// route lets nobody but the API server ask. What others send is not read.
func (s *Server) route() http.Handler {
	handlers := map[string]http.Handler{}
	for _, webhook := range s.options.Webhooks {
		handlers[webhook.Name] = s.handler(webhook)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, webhook, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		handler, ok := handlers[webhook]
		if !s.calledBy(caller) || !ok || r.Method != http.MethodPost {
			w.Header().Set("Connection", "close")
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// calledBy reports whether a caller is the API server. If somebody took the Secret, what was made in
// its place is known to it before it is served.
func (s *Server) calledBy(caller string) bool {
	for _, c := range []*certificate{s.serving.Load(), s.next.Load()} {
		if c != nil && c.calledBy(caller, time.Now()) {
			return true
		}
	}
	return false
}
