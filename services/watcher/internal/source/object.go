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
	// Meaning is a fingerprint of what consumers act on: two states of equal meaning
	// need not both be published.
	Meaning string
}

// object makes raw, as the API server sent it, what may travel.
func (s *Source) object(kind kinds.Kind, raw []byte) (Object, error) {
	s.mu.Lock()
	origin := kube.Origin{Cluster: s.cluster, Epoch: s.epoch}
	s.mu.Unlock()
	o, err := origin.Read(kind, raw)
	if err != nil {
		return Object{}, err
	}
	o.ObservedAt = time.Now()
	return Object{Meaning: meaning(kind, o.Top, o.Metadata), Change: o.Change}, nil
}

// meaning leaves out what changes with every write, and the status if nobody reads it.
// Of a kind that travels without its content every write may matter, unless it is a target: then only what it is, and whose.
func meaning(kind kinds.Kind, top, metadata kube.Fields) string {
	sum := sha256.New()
	digest(sum, metadata, func(name string) bool { return name == "resourceVersion" && (!kind.MetadataOnly || kind.Target) })
	digest(sum, top, func(name string) bool { return name == "metadata" || name == "status" && !kind.Status })
	const enough = 16
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:enough])
}

func digest(sum hash.Hash, f kube.Fields, skip func(string) bool) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !skip(name) {
			fmt.Fprintf(sum, "%q:%d:", name, len(f[name]))
			sum.Write(f[name])
		}
	}
}
