package source

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Object is the state of one object.
type Object struct {
	event.Change
	// Meaning is a fingerprint of what consumers act on: two states of equal meaning
	// need not both be published.
	Meaning string
}

// fields are the parts of a JSON object, as they were sent.
type fields map[string]json.RawMessage

// identity is what an event repeats of an object's metadata.
type identity struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Generation      int64  `json:"generation"`
}

// object makes raw, as the API server sent it, what may travel.
func (s *Source) object(kind kinds.Kind, raw []byte) (Object, error) {
	var top, metadata fields
	if err := json.Unmarshal(raw, &top); err != nil {
		return Object{}, fmt.Errorf("decoding an object: %w", err)
	}
	var id identity
	for _, into := range []any{&id, &metadata} {
		if err := json.Unmarshal(top["metadata"], into); err != nil {
			return Object{}, fmt.Errorf("decoding metadata of an object: %w", err)
		}
	}
	if err := slim(kind, top, metadata); err != nil {
		return Object{}, fmt.Errorf("encoding %s: %w", id.Name, err)
	}
	data, err := json.Marshal(top)
	if err != nil {
		return Object{}, fmt.Errorf("encoding %s: %w", id.Name, err)
	}
	s.mu.Lock()
	epoch := s.epoch
	s.mu.Unlock()
	return Object{Meaning: meaning(kind, top, metadata), Change: event.Change{
		Key:     event.Key{Cluster: s.cluster, GroupResource: kind.GroupResource, Namespace: id.Namespace, Name: id.Name},
		Version: kind.Version, Kind: kind.Kind, UID: id.UID, ResourceVersion: id.ResourceVersion,
		Generation: id.Generation, Object: data, Epoch: epoch, ObservedAt: time.Now(),
	}}, nil
}

// slim takes out what need not or must not travel. Lists of built-in kinds leave out
// what kind their items are; it is put back.
func slim(kind kinds.Kind, top, metadata fields) error {
	delete(metadata, "managedFields")
	if kind.MetadataOnly {
		maps.DeleteFunc(top, func(name string, _ json.RawMessage) bool { return name != "metadata" })
		if err := redact(metadata); err != nil {
			return err
		}
	}
	apiVersion := schema.GroupVersion{Group: kind.Group, Version: kind.Version}.String()
	for name, value := range map[string]any{"metadata": metadata, "apiVersion": apiVersion, "kind": kind.Kind} {
		if err := set(top, name, value); err != nil {
			return err
		}
	}
	return nil
}

// redact removes where kubectl keeps the whole object, with a Secret's values.
func redact(metadata fields) error {
	var annotations fields
	if raw, ok := metadata["annotations"]; !ok {
		return nil
	} else if err := json.Unmarshal(raw, &annotations); err != nil {
		return err
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return set(metadata, "annotations", annotations)
}

func set(f fields, name string, value any) error {
	data, err := json.Marshal(value)
	f[name] = data
	return err
}

// meaning leaves out what changes with every write, and the status if nobody reads it.
// Of a kind that travels without its content every write may matter.
func meaning(kind kinds.Kind, top, metadata fields) string {
	sum := sha256.New()
	digest(sum, metadata, func(name string) bool { return name == "resourceVersion" && !kind.MetadataOnly })
	digest(sum, top, func(name string) bool { return name == "metadata" || name == "status" && !kind.Status })
	const enough = 16
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:enough])
}

func digest(sum hash.Hash, f fields, skip func(string) bool) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !skip(name) {
			fmt.Fprintf(sum, "%q:%d:", name, len(f[name]))
			sum.Write(f[name])
		}
	}
}
