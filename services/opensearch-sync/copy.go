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
	"fmt"
	"io"
	"slices"
	"strings"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kube"
)

const (
	// plainCopy bounds a copy that is stored without compression, in bytes.
	plainCopy = 4 << 10
	// maxCopy bounds a decompressed copy, in bytes.
	maxCopy = 16 << 20
	// compressed is the prefix of a compressed copy.
	compressed = "gzip:"
)

// recordCopy is the copy of an object's record in an annotation. The CustomResourceDefinition of another project prunes
// our fields of a status, but no annotations. The copy counts if the status names no server.
type recordCopy struct {
	// UID is the UID of the object. A copy that was applied to another object does not count.
	UID string `json:"uid"`
	// Server and Cluster correspond to managedServer and managedCluster of the status.
	Server  string `json:"server"`
	Cluster string `json:"cluster"`
	// Connection is a digest of the OpenSearchCluster's connection settings.
	Connection  string                     `json:"connection,omitempty"`
	Existing    *bool                      `json:"existing,omitempty"`
	Provisioned []opensearchv1.Provisioned `json:"provisioned,omitempty"`
}

// encodeCopy returns the value of the annotation.
func (c recordCopy) encodeCopy() string {
	data, err := json.Marshal(c)
	if err != nil || len(data) <= plainCopy {
		return string(data)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data) // Writes to a buffer cannot fail.
	_ = w.Close()
	return compressed + base64.StdEncoding.EncodeToString(packed.Bytes())
}

// readRecordCopy returns the copy in the annotation of an object, if it is valid and belongs to this object. Users may create
// objects with any annotation, so it reads a copy only after the UID, which is the first field.
func readRecordCopy(o opensearchv1.DeclaredObject) (c recordCopy, ok bool) {
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
	begin := fmt.Appendf(nil, `{"uid":%q,`, o.GetUID())
	found := make([]byte, len(begin))
	if _, err := io.ReadFull(from, found); err != nil || !bytes.Equal(found, begin) {
		return c, false
	}
	err := json.NewDecoder(io.MultiReader(bytes.NewReader(begin), from)).Decode(&c)
	return c, err == nil
}

// newRecordCopy returns the copy for a record of an object.
func newRecordCopy(o declaredObject, w syncInput, f statusFields) recordCopy {
	was, _ := readRecordCopy(o.value)
	c := recordCopy{
		UID: string(o.value.GetUID()), Server: f.ManagedServer, Cluster: f.ManagedCluster, Connection: was.Connection,
		Existing: cmp.Or(f.ExistingRole, f.ExistingTenant, f.ExistingActionGroup), Provisioned: f.Provisioned,
	}
	if !w.cleanup {
		c.Connection = connectionDigest(w.cluster)
	}
	return c
}

// connectionDigest returns a digest of the connection settings of a cluster.
func connectionDigest(c *opensearchv1.OpenSearchCluster) string {
	data, err := json.Marshal([]any{c.Spec, c.Annotations[opensearchv1.ConnectionAnnotation]})
	if err != nil {
		return "" // Decoded JSON can always be encoded.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// withEffectiveRecord returns an object whose status holds the record that counts. If the status has lost its record, that is
// the copy. If the annotation to forget names the server or cluster, the record is empty.
func withEffectiveRecord(o opensearchv1.DeclaredObject) opensearchv1.DeclaredObject {
	c, pruned := recordCopy{Server: o.CommonStatus().ManagedServer, Cluster: o.CommonStatus().ManagedCluster}, false
	if c.Server == "" {
		if kept, ok := readRecordCopy(o); ok {
			c, pruned = kept, true
		}
	}
	forget := o.GetAnnotations()[opensearchv1.ForgetAnnotation]
	forgotten := forget != "" && forget == cmp.Or(c.Server, c.Cluster)
	if !forgotten && !pruned {
		return o
	}
	o = deepCopyDeclared(o)
	if forgotten {
		c, o.CommonStatus().State = recordCopy{}, ""
	}
	o.CommonStatus().ManagedServer, o.CommonStatus().ManagedCluster = c.Server, c.Cluster
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

// managedServerName returns the server that holds the entities of an object, for messages.
func (o declaredObject) managedServerName() string {
	return cmp.Or(o.value.CommonStatus().ManagedServer, "that its status does not name")
}

// forgetAnnotation returns the annotation that makes opensearch-sync drop the record of an object.
func (o declaredObject) forgetAnnotation() string {
	return opensearchv1.ForgetAnnotation + "=" + cmp.Or(o.value.CommonStatus().ManagedServer, o.value.CommonStatus().ManagedCluster)
}

// writeRecordCopy writes the copy of a record. If hold is true, it also adds the finalizer.
func (s *statusReporter) writeRecordCopy(ctx context.Context, p *controller.Request[Key], o declaredObject, c recordCopy, hold bool) (event.Change, error) {
	metadata := map[string]any{"annotations": map[string]any{opensearchv1.RecordAnnotation: c.encodeCopy()}}
	if hold {
		metadata["finalizers"] = append(slices.Clone(o.value.GetFinalizers()), opensearchv1.Finalizer)
	}
	now, err := s.kube.MergePatch(ctx, o.kind, o.Change, map[string]any{"metadata": metadata})
	if errors.Is(err, kube.ErrConflict) {
		now, err = o.Change, s.writer.RefreshAsStale(ctx, o.kind, o.Change)
	} else if err == nil {
		err = p.RecordWrite(ctx, o.Change, now)
	}
	if errors.Is(err, kube.ErrNotFound) {
		err = nil // The event of the deletion is on its way.
	}
	return now, err
}

// updateRecordCopy updates an existing copy that differs from c, and returns the new state of the object.
func (s *statusReporter) updateRecordCopy(ctx context.Context, p *controller.Request[Key], o declaredObject, c recordCopy) (event.Change, error) {
	if _, has := readRecordCopy(o.value); !has || hasRecordCopy(o, c) {
		return o.Change, nil
	}
	return s.writeRecordCopy(ctx, p, o, c, false)
}

// hasRecordCopy reports whether an object holds exactly this copy.
func hasRecordCopy(o declaredObject, c recordCopy) bool {
	has, ok := readRecordCopy(o.value)
	return ok && has.encodeCopy() == c.encodeCopy()
}
