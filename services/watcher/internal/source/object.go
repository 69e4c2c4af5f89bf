package source

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

// Object is the state of one object.
type Object struct {
	event.Change
	// ContentHash is a fingerprint of the fields that consumers use. If two states have the same meaning, only one need be
	// published.
	ContentHash string
}

// toObject converts the JSON of the API server to the state that is published.
func (s *Source) toObject(kind kinds.Kind, raw []byte) (Object, error) {
	s.mu.Lock()
	origin := kube.ClusterOrigin{Cluster: s.cluster, Epoch: s.epoch}
	s.mu.Unlock()
	o, err := origin.DecodeObject(kind, raw)
	if err != nil {
		return Object{}, err
	}
	o.ObservedAt = time.Now()
	return Object{ContentHash: hashConsumedFields(kind, o.Top, o.Metadata), Change: o.Change}, nil
}

// ContentHash returns the fingerprint of an object in its published form.
func (*Source) ContentHash(kind kinds.Kind, published event.Change) (string, error) {
	o, err := kube.ClusterOrigin{}.DecodeObject(kind, published.Object)
	if err != nil {
		return "", err
	}
	return hashConsumedFields(kind, o.Top, o.Metadata), nil
}

// hashConsumedFields leaves out the fields that every write changes, and the status if no consumer reads it. For a kind
// published without content every write counts. For targets, only identity and ownership count.
func hashConsumedFields(kind kinds.Kind, top, metadata kube.RawFields) string {
	sum := sha256.New()
	digestFields(sum, metadata, func(name string) bool { return name == "resourceVersion" && (!kind.MetadataOnly || kind.Target) })
	digestFields(sum, top, func(name string) bool { return name == "metadata" || name == "status" && !kind.Status })
	const enough = 16
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:enough])
}

func digestFields(sum hash.Hash, f kube.RawFields, skip func(string) bool) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !skip(name) {
			fmt.Fprintf(sum, "%q:%d:", name, len(f[name]))
			sum.Write(f[name])
		}
	}
}
