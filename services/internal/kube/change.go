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
	// versionField and ownersField are names of metadata fields.
	versionField = "resourceVersion"
	ownersField  = "ownerReferences"
	// maxOwners bounds the owner references of a target, in bytes. A target with more is published without owners, so
	// that it always fits into a message.
	maxOwners = 16 << 10
)

// ClusterOrigin identifies a cluster by its name on NATS and its UID.
type ClusterOrigin struct {
	Cluster, Epoch string
}

// RawFields holds the encoded fields of a JSON object.
type RawFields map[string]json.RawMessage

// Object is an object of the API server in the form in which it is published. Only its metadata is decoded, because
// objects may be large.
type Object struct {
	event.Change
	// Top holds the fields of the object. Metadata holds the fields of its metadata.
	Top, Metadata RawFields
}

// DecodeObject converts an object that the API server returned to its published form. raw is the object as JSON. The
// caller sets Deleted, ObservedAt and Traceparent.
func (o ClusterOrigin) DecodeObject(kind kinds.Kind, raw []byte) (Object, error) {
	var top, metadata RawFields
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
		if err := metadata.decodeField(name, into); err != nil {
			return Object{}, fmt.Errorf("decoding %s of an object: %w", name, err)
		}
	}
	if c.Key.Name == "" || c.UID == "" || c.ResourceVersion == "" {
		return Object{}, fmt.Errorf("an object has no name, uid or resourceVersion: %q, %q, %q", c.Key.Name, c.UID, c.ResourceVersion)
	}
	if err := trimForPublication(kind, top, metadata); err != nil {
		return Object{}, fmt.Errorf("encoding %s: %w", c.Key.Name, err)
	}
	var err error
	if c.Object, err = top.encodeSorted(); err != nil {
		return Object{}, fmt.Errorf("encoding %s: %w", c.Key.Name, err)
	}
	return Object{Top: top, Metadata: metadata, Change: c}, nil
}

// trimForPublication removes fields that must not or need not be published. It adds apiVersion and kind, which are
// missing in lists of built-in kinds.
func trimForPublication(kind kinds.Kind, top, metadata RawFields) error {
	delete(metadata, "managedFields")
	if kind.MetadataOnly {
		maps.DeleteFunc(top, func(name string, _ json.RawMessage) bool { return name != "metadata" })
		if err := removeLastApplied(metadata); err != nil {
			return err
		}
	}
	switch {
	case kind.ReferencedOnly:
		metadata.keepFields(identityFields()...)
	case kind.Target: // Access to a target also depends on its owners.
		metadata.keepFields(append(identityFields(), ownersField, "deletionTimestamp")...)
		if len(metadata[ownersField]) > maxOwners {
			delete(metadata, ownersField)
		}
	}
	var err error
	if top["metadata"], err = metadata.encodeSorted(); err != nil {
		return err
	}
	for name, value := range map[string]any{"apiVersion": apiVersion(kind.Group, kind.Version), "kind": kind.Kind} {
		if err := top.setField(name, value); err != nil {
			return err
		}
	}
	return nil
}

// identityFields lists the metadata fields that identify an object and its state.
func identityFields() []string { return []string{"name", "namespace", "uid", versionField} }

// removeLastApplied removes the annotation in which kubectl stores the whole object, including the values of a Secret.
func removeLastApplied(metadata RawFields) error {
	var annotations RawFields
	if err := metadata.decodeField("annotations", &annotations); err != nil || annotations == nil {
		return err
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return metadata.setField("annotations", annotations)
}

// decodeField decodes a field if it exists.
func (f RawFields) decodeField(name string, into any) error {
	if raw, ok := f[name]; ok {
		return json.Unmarshal(raw, into)
	}
	return nil
}

// keepFields removes all fields except the named ones.
func (f RawFields) keepFields(names ...string) {
	maps.DeleteFunc(f, func(name string, _ json.RawMessage) bool { return !slices.Contains(names, name) })
}

func (f RawFields) setField(name string, value any) error {
	data, err := json.Marshal(value)
	f[name] = data
	return err
}

// encodeSorted encodes the fields as a JSON object, sorted by name. It does not decode them.
func (f RawFields) encodeSorted() (json.RawMessage, error) {
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
