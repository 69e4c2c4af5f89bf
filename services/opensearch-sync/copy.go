package opensearchsync

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kube"
)

const (
	// plainCopy is the length up to which a copy of a record stays readable, in bytes.
	plainCopy = 4 << 10
	// maxCopy bounds a copy that was compressed, in bytes.
	maxCopy = 16 << 20
	// compressed precedes a copy that was compressed.
	compressed = "gzip:"
)

// recordCopy is the record of an object as an annotation holds it. The CustomResourceDefinition of another project prunes our fields
// of a status, and no annotation. The copy counts where the status names no server.
type recordCopy struct {
	// UID is that of the object: a copy that somebody applied to another object does not count.
	UID string `json:"uid"`
	// Server and Cluster are managedServer and managedCluster of the status.
	Server  string `json:"server"`
	Cluster string `json:"cluster"`
	// Connection is a digest of what the OpenSearchCluster said of its connection.
	Connection  string                     `json:"connection,omitempty"`
	Existing    *bool                      `json:"existing,omitempty"`
	Provisioned []opensearchv1.Provisioned `json:"provisioned,omitempty"`
}

// encode returns the value of the annotation.
func (c recordCopy) encode() string {
	data, err := json.Marshal(c)
	if err != nil || len(data) <= plainCopy {
		return string(data)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data) // A buffer takes everything.
	_ = w.Close()
	return compressed + base64.StdEncoding.EncodeToString(packed.Bytes())
}

// copyIn returns the copy that an object has of its own record.
func copyIn(o opensearchv1.Declared) (c recordCopy, ok bool) {
	text, ok := o.GetAnnotations()[opensearchv1.RecordAnnotation]
	if !ok {
		return c, false
	}
	var from io.Reader = strings.NewReader(text)
	if packed, is := strings.CutPrefix(text, compressed); is {
		r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
		if err != nil {
			return c, false
		}
		from = io.LimitReader(r, maxCopy)
	}
	err := json.NewDecoder(from).Decode(&c)
	return c, err == nil && c.UID == string(o.GetUID())
}

// copyOf returns the copy of a record of an object in a cluster.
func copyOf(o object, w work, f fields) recordCopy {
	was, _ := copyIn(o.value)
	c := recordCopy{
		UID: string(o.value.GetUID()), Server: f.ManagedServer, Cluster: f.ManagedCluster, Connection: was.Connection,
		Existing: cmp.Or(f.ExistingRole, f.ExistingTenant, f.ExistingActionGroup), Provisioned: f.Provisioned,
	}
	if !w.cleanup {
		c.Connection = digestOf(w.cluster)
	}
	return c
}

// digestOf stands for what a cluster says of its connection.
func digestOf(c *opensearchv1.OpenSearchCluster) string {
	data, err := json.Marshal([]any{c.Spec, c.Annotations[opensearchv1.ConnectionAnnotation]})
	if err != nil {
		return "" // What was decoded can be encoded.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// withRecord returns an object with the record that counts in its status: that of the copy if the status has lost its own, and none
// if somebody who may has it forgotten.
func withRecord(o opensearchv1.Declared) opensearchv1.Declared {
	c, pruned := recordCopy{Server: o.State().ManagedServer, Cluster: o.State().ManagedCluster}, false
	if c.Server == "" {
		if kept, ok := copyIn(o); ok {
			c, pruned = kept, true
		}
	}
	forget := o.GetAnnotations()[opensearchv1.ForgetAnnotation]
	forgotten := forget != "" && forget == cmp.Or(c.Server, c.Cluster)
	if !forgotten && !pruned {
		return o
	}
	o = copied(o)
	if forgotten {
		c, o.State().State = recordCopy{}, ""
	}
	o.State().ManagedServer, o.State().ManagedCluster = c.Server, c.Cluster
	switch o := o.(type) {
	case *opensearchv1.OpensearchRole:
		o.Status.ExistingRole = c.Existing
	case *opensearchv1.OpensearchTenant:
		o.Status.ExistingTenant = c.Existing
	case *opensearchv1.OpensearchActionGroup:
		o.Status.ExistingActionGroup = c.Existing
	case *opensearchv1.OpensearchUserRoleBinding:
		o.Status.Provisioned, o.Status.ProvisionedRoles = c.Provisioned, nil
	}
	return o
}

// madeOn names the server that has what was made for an object.
func (o object) madeOn() string {
	return cmp.Or(o.value.State().ManagedServer, "that its status does not name")
}

// toForget is the annotation by which an object is to be treated as if nothing had been made for it.
func (o object) toForget() string {
	return opensearchv1.ForgetAnnotation + "=" + cmp.Or(o.value.State().ManagedServer, o.value.State().ManagedCluster)
}

// keep writes the copy of a record, and holds the object if it must not go before what was made for it.
func (s *statuses) keep(ctx context.Context, p *consume.Pass[Key], o object, c recordCopy, hold bool) (event.Change, error) {
	metadata := map[string]any{"annotations": map[string]any{opensearchv1.RecordAnnotation: c.encode()}}
	if hold {
		metadata["finalizers"] = append(slices.Clone(o.value.GetFinalizers()), opensearchv1.Finalizer)
	}
	now, err := s.kube.Merge(ctx, o.kind, o.Change, map[string]any{"metadata": metadata})
	if errors.Is(err, kube.ErrConflict) {
		now, err = o.Change, s.writer.Refresh(ctx, o.kind, o.Change)
	} else if err == nil {
		err = p.Wrote(ctx, o.Change, now)
	}
	if errors.Is(err, kube.ErrNotFound) {
		err = nil // The event that says so is on its way.
	}
	return now, err
}

// renew writes the copy of a record that has changed, if the object has one, and returns the object's new state.
func (s *statuses) renew(ctx context.Context, p *consume.Pass[Key], o object, c recordCopy) (event.Change, error) {
	if _, has := copyIn(o.value); !has || hasCopy(o, c) {
		return o.Change, nil
	}
	return s.keep(ctx, p, o, c, false)
}

// hasCopy reports whether an object has a copy of a record.
func hasCopy(o object, c recordCopy) bool {
	has, ok := copyIn(o.value)
	return ok && has.encode() == c.encode()
}
