package opensearchsync

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// bindingWith returns a binding with a copy of a record. Its status has only the fields of the public operator's
// definition.
func bindingWith(annotations map[string]string) *opensearchv1.OpensearchUserRoleBinding {
	b := &opensearchv1.OpensearchUserRoleBinding{ObjectMeta: named("one")}
	b.Annotations = annotations
	b.Status.State, b.Status.ManagedCluster, b.Status.ProvisionedRoles = opensearchv1.Created, "old", []string{"stale"}
	return b
}

func TestReadRecordCopyRequiresSameObject(t *testing.T) {
	entries := []opensearchv1.Provisioned{{Role: "hr", Users: []string{"anna"}}}
	for name, c := range map[string]struct {
		uid, forget, has, server string
		entries                  []opensearchv1.Provisioned
	}{
		"of the object":                                    {"uid-one", "", "", "server", entries},
		"of another object":                                {"uid-two", "", "", "", nil},
		"of the object, on a forgotten server":             {"uid-one", "server", "", "", nil},
		"of the object, where another server is forgotten": {"uid-one", "other", "", "server", entries},
		"of the object, whose status has its record":       {"uid-one", "", "newer", "newer", nil},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{opensearchv1.RecordAnnotation: recordCopy{UID: c.uid, Server: "server", Cluster: "new", Provisioned: entries}.encodeCopy()}
			if c.forget != "" {
				annotations[opensearchv1.ForgetAnnotation] = c.forget
			}
			was := bindingWith(annotations)
			was.Status.ManagedServer = c.has
			before := was.DeepCopy()
			is, _ := withEffectiveRecord(was).(*opensearchv1.OpensearchUserRoleBinding)
			if is.Status.ManagedServer != c.server || !reflect.DeepEqual(is.Status.Provisioned, c.entries) {
				t.Errorf("got server %q, entries %v, want %q, %v", is.Status.ManagedServer, is.Status.Provisioned, c.server, c.entries)
			}
			if !reflect.DeepEqual(was, before) {
				t.Error("the object of the view was changed")
			}
		})
	}
}

func TestHasLostRecord(t *testing.T) {
	synced := bindingWith(nil)
	synced.Status.ProvisionedRoles = nil
	told := synced.DeepCopy()
	told.Status.State, told.Status.Reason = opensearchv1.Error, recordMissing+"x"
	waiting := synced.DeepCopy()
	waiting.Status.State = opensearchv1.Pending
	recorded := synced.DeepCopy()
	recorded.Status.ManagedServer = "server"
	for name, c := range map[string]struct {
		o    opensearchv1.DeclaredObject
		lost bool
	}{
		"in step": {synced, true}, "told so": {told, true}, "never in step": {waiting, false}, "recorded": {recorded, false},
		"the public operator's": {bindingWith(nil), false},
	} {
		if got := (declaredObject{value: c.o}).hasLostRecord(); got != c.lost {
			t.Errorf("%s: got lost %t, want %t", name, got, c.lost)
		}
	}
}

func TestRecordCopyOfLargeRecordFitsAnnotation(t *testing.T) {
	c := recordCopy{UID: "uid-one", Server: "server"}
	var users []string
	for i := range 200 {
		users = append(users, fmt.Sprint("user-", i))
	}
	for i := range 200 {
		c.Provisioned = append(c.Provisioned, opensearchv1.Provisioned{Role: fmt.Sprint("role-", i), Users: users})
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	text := c.encodeCopy()
	got, ok := readRecordCopy(bindingWith(map[string]string{opensearchv1.RecordAnnotation: text}))
	if !ok || !reflect.DeepEqual(got, c) || len(text) > 64<<10 {
		t.Errorf("%d bytes became %d, read: %t", len(data), len(text), ok)
	}
}

// Everybody who may create objects may create one with any annotation, of 256 KiB at most. Decoded, it can take a gigabyte.
func TestReadRecordCopyIgnoresOtherObject(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprint(w, `{"uid":"another","provisioned":[{}`, strings.Repeat(",{}", maxCopy/4), `]}`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	forged := bindingWith(map[string]string{opensearchv1.RecordAnnotation: compressed + base64.StdEncoding.EncodeToString(packed.Bytes())})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, ok := readRecordCopy(forged)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; ok || took > 4 {
		t.Errorf("got valid %t, %d MiB allocated, want none", ok, took)
	}
}
