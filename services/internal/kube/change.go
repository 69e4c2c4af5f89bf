package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// versionField is that of the version, in metadata, ownersField that of whose an object is.
	versionField = "resourceVersion"
	ownersField  = "ownerReferences"
	// maxOwners is how many bytes the owner references of a target may have: of more it is nobody's. So it always travels, and
	// costs as little as others, whatever somebody writes into it.
	maxOwners = 16 << 10
)

// Origin is where objects come from: the cluster's name on the bus, and its UID.
type Origin struct {
	Cluster, Epoch string
}

// Fields are the parts of a JSON object, as they were sent.
type Fields map[string]json.RawMessage

// Object is one of the API server's as it may travel. Objects may be large: nothing of them is decoded
// but their metadata.
type Object struct {
	event.Change
	// Top and Metadata are the fields of the object, and of its metadata.
	Top, Metadata Fields
}

// Read makes raw, an object of the given kind as the API server sent it, what may travel. The caller
// adds what raw cannot know: Deleted, ObservedAt and Traceparent.
func (o Origin) Read(kind kinds.Kind, raw []byte) (Object, error) {
	var top, metadata Fields
	if err := json.Unmarshal(raw, &top); err != nil {
		return Object{}, fmt.Errorf("decoding an object: %w", err)
	}
	if err := json.Unmarshal(top["metadata"], &metadata); err != nil {
		return Object{}, fmt.Errorf("decoding metadata of an object: %w", err)
	}
	c := event.Change{
		Key: event.Key{Cluster: o.Cluster, GroupResource: kind.GroupResource}, Version: kind.Version, Kind: kind.Kind, Epoch: o.Epoch,
	}
	for name, into := range map[string]any{
		"name": &c.Key.Name, "namespace": &c.Key.Namespace, "uid": &c.UID, versionField: &c.ResourceVersion, "generation": &c.Generation,
	} {
		if err := metadata.get(name, into); err != nil {
			return Object{}, fmt.Errorf("decoding %s of an object: %w", name, err)
		}
	}
	if c.Key.Name == "" || c.UID == "" || c.ResourceVersion == "" {
		return Object{}, fmt.Errorf("an object has no name, uid or resourceVersion: %q, %q, %q", c.Key.Name, c.UID, c.ResourceVersion)
	}
	if err := slim(kind, top, metadata); err != nil {
		return Object{}, fmt.Errorf("encoding %s: %w", c.Key.Name, err)
	}
	var err error
	if c.Object, err = top.join(); err != nil {
		return Object{}, fmt.Errorf("encoding %s: %w", c.Key.Name, err)
	}
	return Object{Top: top, Metadata: metadata, Change: c}, nil
}

// slim takes out what need not or must not travel. Lists of built-in kinds leave out
// what kind their items are; it is put back.
func slim(kind kinds.Kind, top, metadata Fields) error {
	delete(metadata, "managedFields")
	if kind.MetadataOnly {
		maps.DeleteFunc(top, func(name string, _ json.RawMessage) bool { return name != "metadata" })
		if err := redact(metadata); err != nil {
			return err
		}
	}
	switch {
	case kind.Named:
		metadata.keep(identity()...)
	case kind.Target: // It matters whose it is, too.
		metadata.keep(append(identity(), ownersField, "deletionTimestamp")...)
		if len(metadata[ownersField]) > maxOwners {
			delete(metadata, ownersField)
		}
	}
	var err error
	if top["metadata"], err = metadata.join(); err != nil {
		return err
	}
	for name, value := range map[string]any{"apiVersion": apiVersion(kind.Group, kind.Version), "kind": kind.Kind} {
		if err := top.set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// identity is what tells an object, and its states, from others.
func identity() []string { return []string{"name", "namespace", "uid", versionField} }

// redact removes where kubectl keeps the whole object, with a Secret's values.
func redact(metadata Fields) error {
	var annotations Fields
	if err := metadata.get("annotations", &annotations); err != nil || annotations == nil {
		return err
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return metadata.set("annotations", annotations)
}

// get decodes a field, if it is there.
func (f Fields) get(name string, into any) error {
	if raw, ok := f[name]; ok {
		return json.Unmarshal(raw, into)
	}
	return nil
}

// keep drops all other fields.
func (f Fields) keep(names ...string) {
	maps.DeleteFunc(f, func(name string, _ json.RawMessage) bool { return !slices.Contains(names, name) })
}

func (f Fields) set(name string, value any) error {
	data, err := json.Marshal(value)
	f[name] = data
	return err
}

// join is the object that f is the fields of, in the order of their names. They are as they were sent: nothing in them is
// looked at once more.
func (f Fields) join() (json.RawMessage, error) {
	size := len("{}")
	for name, raw := range f {
		size += len(name) + len(raw) + len(`"":,`)
	}
	object := append(make(json.RawMessage, 0, size), '{')
	for i, name := range slices.Sorted(maps.Keys(f)) {
		if i > 0 {
			object = append(object, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		object = append(append(append(object, quoted...), ':'), f[name]...)
	}
	return append(object, '}'), nil
}

func apiVersion(group, version string) string {
	return schema.GroupVersion{Group: group, Version: version}.String()
}
