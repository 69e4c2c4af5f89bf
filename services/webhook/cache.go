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
	// keptFor bounds the time for which an answer is kept, because OpenFGA can lose tuples, for example by a restored
	// backup.
	keptFor = time.Minute
	// maxAge bounds the age of the index for which a kept answer counts.
	maxAge = 2 * time.Second
	// maxKey bounds the key of a kept answer, in bytes.
	maxKey = 4 << 10
)

// answerCache keeps answers of OpenFGA. An answer counts only while the index gives the same one. The index receives each
// change before tuple-sync writes it to OpenFGA, so no answer from before a revocation allows access. Answers on which
// both disagree are not kept. A nil cache keeps nothing.
type answerCache struct {
	kept *lru.LRUExpireCache
	// age returns the age of the index.
	age          func() time.Duration
	hits, misses prometheus.Counter
}

// newAnswerCache returns a cache of at most size answers.
func newAnswerCache(size int, age func() time.Duration) *answerCache {
	return &answerCache{
		kept: lru.NewLRUExpireCache(size), age: age,
		hits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "authz_cache_hits_total", Help: "Checks that webhook answered from its cache of OpenFGA's answers.",
		}),
		misses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "authz_cache_misses_total", Help: "Checks that webhook sent to OpenFGA because its cache had no answer.",
		}),
	}
}

// checkCacheKey returns the key of a check: the store, the model and all tuples. It returns "" if the key would be longer than
// maxKey.
func checkCacheKey(store *corev1alpha1.Store, c iam.OpenFGACheck) string {
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

// hasAgreedAnswer reports whether a kept answer of OpenFGA equals the current answer of the index.
func (c *answerCache) hasAgreedAnswer(key string, declared bool) bool {
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

// storeIfAgreed stores an answer of OpenFGA if the index gives the same one, and otherwise removes the stored one.
func (c *answerCache) storeIfAgreed(key string, allowed, declared bool) {
	switch {
	case c == nil || key == "":
	case allowed == declared:
		c.kept.Add(key, allowed, keptFor)
	default:
		c.kept.Remove(key)
	}
}
