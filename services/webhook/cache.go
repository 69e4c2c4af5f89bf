package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	lru "k8s.io/apimachinery/pkg/util/cache"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

const (
	// keptFor bounds for how long an answer is kept: OpenFGA can lose what it had, by a restored backup.
	keptFor = time.Minute
	// maxAge is how old the index may be that says an answer is still true.
	maxAge = 2 * time.Second
	// maxKey bounds a question that is kept, in bytes.
	maxKey = 4 << 10
)

// cache keeps answers of OpenFGA, each as long as the index says the same. Whatever is declared is in the index before tuple-sync
// has it in OpenFGA, and what both disagree on is not kept: so nobody is let in by an answer from before a revocation, and
// nobody has to announce what it touches. Nil keeps nothing.
type cache struct {
	kept *lru.LRUExpireCache
	// age is that of the index.
	age          func() time.Duration
	hits, misses prometheus.Counter
}

// newCache keeps as many answers.
func newCache(size int, age func() time.Duration) *cache {
	return &cache{
		kept: lru.NewLRUExpireCache(size), age: age,
		hits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "authz_cache_hits_total", Help: "Questions to which a kept answer of OpenFGA was the answer.",
		}),
		misses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "authz_cache_misses_total", Help: "Questions that OpenFGA was asked for want of one.",
		}),
	}
}

// keyOf is all that OpenFGA is asked, and of which store and model; empty of what is too long to be kept.
func keyOf(store *corev1alpha1.Store, c iam.Check) string {
	key := strconv.AppendQuote(nil, store.Status.StoreID)
	key = strconv.AppendQuote(key, store.Status.AuthorizationModelID)
	for i := -1; i < len(c.Context) && len(key) <= maxKey; i++ {
		t := c.Tuple
		if i >= 0 {
			t = c.Context[i]
		}
		for _, part := range [...]string{t.User, t.Relation, t.Object} {
			key = strconv.AppendQuote(key, part)
		}
	}
	if len(key) > maxKey {
		return ""
	}
	return string(key)
}

// has reports whether OpenFGA has said to a question what the index says now.
func (c *cache) has(key string, declared bool) bool {
	if c == nil {
		return false
	}
	if allowed, ok := c.kept.Get(key); ok && allowed == declared && c.age() <= maxAge {
		c.hits.Inc()
		return true
	}
	c.misses.Inc()
	return false
}

// keep keeps what OpenFGA says, if the index says the same by then.
func (c *cache) keep(key string, allowed, declared bool) {
	switch {
	case c == nil || key == "":
	case allowed == declared:
		c.kept.Add(key, allowed, keptFor)
	default:
		c.kept.Remove(key)
	}
}
