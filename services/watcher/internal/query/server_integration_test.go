//go:build integration

package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
	"github.com/entail-dev/entail/services/watcher/internal/trail"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// fakeSource is an API server with fixed answers.
type fakeSource struct {
	objects map[string]source.Object
	err     error
}

func (c *fakeSource) Get(_ context.Context, _ kinds.Kind, namespace, name string) (source.Object, error) {
	if c.err != nil {
		return source.Object{}, c.err
	}
	o, ok := c.objects[namespace+"/"+name]
	if !ok {
		return source.Object{}, source.ErrNotFound
	}
	return o, nil
}

func (c *fakeSource) ShortNames(_ context.Context, kind kinds.Kind) ([]string, error) {
	if kind.Resource != "stores" {
		return nil, errors.New("not served yet")
	}
	return []string{"fgastore", "store"}, c.err
}

// queryEnv holds a server with its own NATS.
type queryEnv struct {
	*Server
	t       *testing.T
	js      jetstream.JetStream
	cluster *fakeSource
}

func newQueryEnv(t *testing.T) *queryEnv {
	t.Helper()
	js := testenv.StartNATS(t).JetStream(t)
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	c := &fakeSource{objects: map[string]source.Object{}}
	return &queryEnv{t: t, js: js, cluster: c, Server: New(Config{
		Source: c, Publisher: publish.New(js), Trail: trail.New(js), Cluster: "local", Kinds: kinds.ConsumedKinds(), TombstoneTTL: time.Hour,
		Resume: func(context.Context) (string, error) { return "forged", nil },
	})}
}

func key(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: name}
}

func state(name string, version int) event.Change {
	return event.Change{
		Key: key(name), Version: "v1alpha1", Kind: "Store", UID: "uid-" + name, Epoch: "e", ResourceVersion: fmt.Sprint(version),
		Generation: int64(version / 10), ObservedAt: time.Unix(1, 0), Object: fmt.Appendf(nil, `{"at":%d}`, version),
	}
}

// exists creates an object in the cluster and on the stream.
func (b *queryEnv) exists(c event.Change) publish.Ack {
	b.t.Helper()
	b.cluster.objects["/"+c.Key.Name] = source.Object{Change: c, ContentHash: "m"}
	return b.publish(c)
}

func (b *queryEnv) publish(c event.Change) publish.Ack {
	b.t.Helper()
	ack, err := b.cfg.Publisher.PublishChange(b.t.Context(), c, 0, publish.PublicationOptions{ContentHash: "m"})
	if err != nil {
		b.t.Fatal(err)
	}
	return ack
}

func (b *queryEnv) send(msg *nats.Msg) uint64 {
	b.t.Helper()
	ack, err := b.js.PublishMsg(b.t.Context(), msg)
	if err != nil {
		b.t.Fatal(err)
	}
	return ack.Sequence
}

func (b *queryEnv) result(service string, c event.Change, outcome eventv1.Outcome) {
	b.t.Helper()
	data, err := proto.Marshal(&eventv1.ResourceResult{
		Ref: c.Key.ToObjectRef(), Service: service, Uid: c.UID, ResourceVersion: c.ResourceVersion, Generation: c.Generation, Outcome: outcome,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.send(&nats.Msg{Subject: topology.ResultSubject(service, c.Key), Data: data})
}

// expectRefused expects an error for the caller with this code and text.
func expectRefused(t *testing.T, err error, code connect.Code, text string) {
	t.Helper()
	if connect.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("error is %v, want %s that says %q", err, code, text)
	}
}

func TestTraceObjectReportsServicesWithNewestState(t *testing.T) {
	b := newQueryEnv(t)
	ack := b.exists(state("x", 25))
	b.result(topology.StoreSync, state("x", 21), eventv1.Outcome_OUTCOME_APPLIED)
	b.result(topology.TupleSync, state("x", 19), eventv1.Outcome_OUTCOME_PENDING)
	got, err := b.TraceObject(t.Context(), &syncv1.TraceObjectRequest{Resource: "stores", Name: "x", Namespace: "stores have none"})
	if err != nil {
		t.Fatal(err)
	}
	if right, err := b.requiredTraceRight(&syncv1.TraceObjectRequest{Resource: "stores", Name: "x", Namespace: "n"}); err != nil || right.Namespace != "" {
		t.Errorf("it needs %v, %v", right, err)
	}
	if right, err := b.requiredTraceRight(&syncv1.TraceObjectRequest{Resource: "rolebindings", Name: "x", Namespace: "n"}); err != nil || right.Namespace != "n" {
		t.Errorf("of what has a namespace it needs %v, %v", right, err)
	}
	if got.GetSequence() != ack.Sequence || got.GetResourceVersion() != "25" || got.GetUid() != "uid-x" || got.GetRef().GetName() != "x" ||
		got.GetOperation() != eventv1.Operation_OPERATION_UPSERT || got.GetPublishedAt().AsTime().IsZero() || got.GetObservedAt().GetSeconds() != 1 {
		t.Errorf("trace is %v", got)
	}
	if sequence, _, err := topology.ParseRevision(got.GetRevision()); err != nil || sequence != ack.Sequence {
		t.Errorf("its revision is %q, %v", got.GetRevision(), err)
	}
	if len(got.GetSteps()) != 2 {
		t.Fatalf("steps are %v", got.GetSteps())
	}
	for i, current := range []bool{true, false} { // for the published generation, and for the one before
		if step := got.GetSteps()[i]; step.GetCurrent() != current {
			t.Errorf("step of %s is current: %v", step.GetResult().GetService(), step.GetCurrent())
		}
	}
}

func TestTraceObjectDeletionNeedsItsOwnResult(t *testing.T) {
	live, gone := state("x", 25), state("x", 26)
	gone.Deleted = true
	other := state("x", 99)
	other.UID = "another"
	for name, tc := range map[string]struct {
		seen event.Change
		of   event.Change
		want bool
	}{
		"the living state":      {live, gone, false},
		"the deletion":          {gone, gone, true},
		"an earlier object":     {other, live, false},
		"a later state":         {gone, live, true},
		"the same generation":   {state("x", 20), live, true},
		"an earlier generation": {state("x", 19), live, false},
	} {
		result := &eventv1.ResourceResult{Uid: tc.seen.UID, ResourceVersion: tc.seen.ResourceVersion, Generation: tc.seen.Generation}
		if got := isCoveringChange(result, tc.of); got != tc.want {
			t.Errorf("%s: covers is %v, want %v", name, got, tc.want)
		}
	}
}

func TestTraceObjectOfMissingObject(t *testing.T) {
	b := newQueryEnv(t)
	_, err := b.TraceObject(t.Context(), &syncv1.TraceObjectRequest{Resource: "stores", Name: "none"})
	expectRefused(t, err, connect.CodeNotFound, "nothing was published about stores.core.platform-mesh.io/none")
	b.send(&nats.Msg{Subject: topology.ChangeSubject(key("bad")), Data: []byte("?")})
	_, err = b.TraceObject(t.Context(), &syncv1.TraceObjectRequest{Resource: "stores", Name: "bad"})
	expectRefused(t, err, connect.CodeNotFound, "entail replay")
	_, err = b.TraceObject(t.Context(), &syncv1.TraceObjectRequest{Resource: "pods", Name: "x"})
	expectRefused(t, err, connect.CodeNotFound, "use one of stores.core.platform-mesh.io, authorizationmodels")
}

func TestFindKindAcceptsEveryName(t *testing.T) {
	b := newQueryEnv(t)
	b.names.readMissingShortNames(t.Context(), b.cluster)
	for name, want := range map[string]string{
		"stores": "stores", "store": "stores", "Store": "stores", "STORES": "stores", "fgastore": "stores",
		"stores.core.platform-mesh.io": "stores", "store.core.platform-mesh.io": "stores", "fgastore.core.platform-mesh.io": "stores",
		"authorizationmodel": "authorizationmodels", "AuthorizationModels": "authorizationmodels",
		"stores.other.group": "", "stores.": "", "": "", ".": "", "fgastores": "",
	} {
		if kind, err := b.names.findKind(name); kind.Resource != want || (err != nil) != (want == "") {
			t.Errorf("%q is %q, %v; want %q", name, kind.Resource, err, want)
		}
	}
}

func TestPollShortNamesEndsWithContext(t *testing.T) {
	b := newQueryEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	testenv.Eventually(t, time.Minute, func() error { _, err := b.names.findKind("fgastore"); return err })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestGetStatusReportsProgressOfServices(t *testing.T) {
	b := newQueryEnv(t)
	for i := range 5 {
		b.publish(state(fmt.Sprint("s", i), 10))
	}
	for _, subject := range []string{topology.ResyncSubject(topology.StoreSync), topology.BarrierSubject("local")} {
		if _, err := b.js.Publish(t.Context(), subject, nil); err != nil {
			t.Fatal(err)
		}
	}
	service, _ := topology.FindService(topology.StoreSync)
	if _, err := topology.EnsureConsumer(t.Context(), b.js, service, topology.DefaultTakeoverBounds()); err != nil {
		t.Fatal(err)
	}
	b.letter(topology.TupleSync, topology.ChangeSubject(key("s1")), []byte("?"))
	streamID, err := b.cfg.Publisher.StreamID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stores := kinds.Stores()
	marker := &eventv1.SnapshotMarker{Cluster: "local", Group: stores.Group, Resource: stores.Resource, Stream: streamID, Count: 5, Served: true}
	if err := b.cfg.Publisher.PublishMarker(t.Context(), marker); err != nil {
		t.Fatal(err)
	}
	absent := kinds.APIBindings()
	if err := b.cfg.Publisher.PublishMarker(t.Context(), &eventv1.SnapshotMarker{
		Cluster: "local", Group: absent.Group, Resource: absent.Resource, Stream: streamID,
	}); err != nil {
		t.Fatal(err)
	}
	got, err := b.GetStatus(t.Context(), &syncv1.GetStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetObjects() != 5 || got.GetLastSequence() != 7 || got.GetDeadLetters() != 1 || len(got.GetServices()) != len(topology.DurableServices()) || len(got.GetSnapshots()) != len(kinds.ConsumedKinds())-1 {
		t.Fatalf("status is %v", got)
	}
	if s := got.GetServices()[0]; s.GetName() != topology.StoreSync || s.GetPending() != 6 || s.GetDeadLetters() != 0 || s.GetLastAckAt() != nil {
		t.Errorf("service that acknowledged nothing is %v", s)
	}
	if s := got.GetServices()[1]; s.GetName() != topology.TupleSync || s.GetPending() != 5 || s.GetDeadLetters() != 1 {
		t.Errorf("service that never started is %v", s)
	}
	if s := got.GetSnapshots(); !s[0].GetCurrent() || s[0].GetMarker().GetCount() != 5 || s[1].GetCurrent() || s[1].GetMarker().GetResource() != "authorizationmodels" {
		t.Errorf("snapshots are %v", s)
	}
}

// deadLetterPageToken returns a page token for the dead letters of a service.
func deadLetterPageToken(t *testing.T, service, says string) string {
	t.Helper()
	_, seal, err := rpc.OpenPageToken(&syncv1.ListDeadLettersRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	return seal(says)
}

// letter parks a message as the consumer runtime does.
func (b *queryEnv) letter(service, subject string, data []byte) uint64 {
	b.t.Helper()
	return b.letterOf(42, service, subject, data)
}

// letterOf parks a message with this original sequence.
func (b *queryEnv) letterOf(sequence uint64, service, subject string, data []byte) uint64 {
	b.t.Helper()
	msg := nats.NewMsg(topology.DeadLetterSubject(service, subject))
	msg.Data = data
	msg.Header.Set(topology.ReasonHeader, "because")
	msg.Header.Set(topology.SubjectHeader, subject)
	msg.Header.Set(topology.SequenceHeader, fmt.Sprint(sequence))
	msg.Header.Set(topology.ServiceHeader, service)
	return b.send(msg)
}

func TestListDeadLettersPagesNewestFirst(t *testing.T) {
	b := newQueryEnv(t)
	var ids []uint64
	for i := range 12 {
		service := []string{topology.StoreSync, topology.TupleSync}[i%2]
		ids = append(ids, b.letter(service, topology.ChangeSubject(key(fmt.Sprint("s", i))), nil))
	}
	if err := b.cfg.Trail.DiscardDeadLetter(t.Context(), ids[5]); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		service string
		size    int32
		want    []uint64
	}{
		"all":            {"", 0, []uint64{12, 11, 10, 9, 8, 7, 5, 4, 3, 2, 1}},
		"in small pages": {"", 2, []uint64{12, 11, 10, 9, 8, 7, 5, 4, 3, 2, 1}},
		"of one service": {topology.TupleSync, 2, []uint64{12, 10, 8, 4, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uint64
			request := &syncv1.ListDeadLettersRequest{Service: tc.service, PageSize: tc.size}
			for {
				page, err := b.ListDeadLetters(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				for _, letter := range page.GetDeadLetters() {
					got = append(got, letter.GetId())
				}
				if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
					break
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	_, err := b.ListDeadLetters(t.Context(), &syncv1.ListDeadLettersRequest{Service: "tuple-synk"})
	expectRefused(t, err, connect.CodeNotFound, topology.TupleSync)
	for _, token := range []string{"x", "-1", "0", deadLetterPageToken(t, topology.TupleSync, "12"), deadLetterPageToken(t, "", "-1")} {
		_, err := b.ListDeadLetters(t.Context(), &syncv1.ListDeadLettersRequest{PageToken: token})
		expectRefused(t, err, connect.CodeInvalidArgument, "page token")
	}
}

func TestGetDeadLetterReturnsMessage(t *testing.T) {
	b := newQueryEnv(t)
	data, err := state("x", 7).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.GetDeadLetter(t.Context(), &syncv1.GetDeadLetterRequest{Id: b.letter(topology.StoreSync, topology.ChangeSubject(key("x")), data)})
	if err != nil {
		t.Fatal(err)
	}
	letter := got.GetDeadLetter()
	if letter.GetReason() != "because" || letter.GetService() != topology.StoreSync || letter.GetOriginalSequence() != 42 ||
		letter.GetRef().GetName() != "x" || !slices.Equal(got.GetData(), data) || !strings.Contains(got.GetChangeJson(), `"at": 7`) {
		t.Errorf("letter is %v", got)
	}
	got, err = b.GetDeadLetter(t.Context(), &syncv1.GetDeadLetterRequest{Id: b.letter(topology.StoreSync, topology.ResyncSubject("x"), []byte("\xff?"))})
	if err != nil || got.GetChangeJson() != "" || got.GetDeadLetter().GetRef() != nil {
		t.Errorf("letter that is no change is %v, %v", got, err)
	}
	_, err = b.GetDeadLetter(t.Context(), &syncv1.GetDeadLetterRequest{Id: 99})
	expectRefused(t, err, connect.CodeNotFound, "no dead letter 99")
}

// A caller that traces an object needs the right to read that very object, under any name of its kind.
func TestTraceObjectRequiresReadRight(t *testing.T) {
	b := newQueryEnv(t)
	b.names.readMissingShortNames(t.Context(), b.cluster)
	for name, c := range map[string]struct {
		request *syncv1.TraceObjectRequest
		want    string
	}{
		"cluster-scoped":    {&syncv1.TraceObjectRequest{Resource: "stores", Name: "a"}, "get stores.core.platform-mesh.io/a"},
		"by a short name":   {&syncv1.TraceObjectRequest{Resource: "fgastore", Name: "a"}, "get stores.core.platform-mesh.io/a"},
		"by a kind":         {&syncv1.TraceObjectRequest{Resource: "RoleBinding", Namespace: "team", Name: "a"}, "get rolebindings.rbac.authorization.k8s.io/team/a"},
		"of no object":      {&syncv1.TraceObjectRequest{Resource: "stores"}, "get stores.core.platform-mesh.io"},
		"of a kind we shun": {&syncv1.TraceObjectRequest{Resource: "secrets", Namespace: "team", Name: "a"}, ""},
	} {
		right, err := b.requiredTraceRight(c.request)
		if c.want == "" {
			if connect.CodeOf(err) != connect.CodeNotFound {
				t.Errorf("%s: %v, %v", name, right, err)
			}
			continue
		}
		if err != nil || right.String() != c.want {
			t.Errorf("%s: %v, %v; want %s", name, right, err, c.want)
		}
	}
	if _, err := b.requiredTraceRight(&syncv1.GetStatusRequest{}); err == nil {
		t.Error("another request got a right")
	}
}
