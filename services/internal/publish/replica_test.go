package publish

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	replicaStream = "REPLICA"
	replicaPrefix = "replica."
)

// laggingStream is a bus whose consumers are on a replica that is behind the stream's leader.
type laggingStream struct {
	jetstream.JetStream
	t testing.TB
}

func newLaggingStream(t testing.TB, js jetstream.JetStream) *laggingStream {
	t.Helper()
	changes := strings.TrimSuffix(topology.ChangeSubject(key("x")), key("x").SubjectTokens())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: replicaStream, Subjects: []string{replicaPrefix + ">"}, MaxMsgsPerSubject: 1,
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: replicaPrefix + ">", Destination: changes + ">"},
	}); err != nil {
		t.Fatal(err)
	}
	return &laggingStream{js, t}
}

func (l *laggingStream) OrderedConsumer(ctx context.Context, _ string, cfg jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	return l.JetStream.OrderedConsumer(ctx, replicaStream, cfg)
}

// reaches makes the replica catch up with the leader for one store.
func (l *laggingStream) reaches(name string) {
	l.t.Helper()
	msg, err := stream(l.t, l).GetLastMsgForSubject(l.t.Context(), topology.ChangeSubject(key(name)))
	if err != nil {
		l.t.Fatal(err)
	}
	copied := &nats.Msg{Subject: replicaPrefix + key(name).SubjectTokens(), Data: msg.Data, Header: msg.Header}
	if _, err := l.PublishMsg(l.t.Context(), copied, jetstream.WithExpectLastSequence(msg.Sequence-1)); err != nil {
		l.t.Fatal(err)
	}
}

func TestReadAllReturnsContentOfStreamLeader(t *testing.T) {
	js := newLaggingStream(t, bus(t, 0))
	p := New(js)
	names := []string{"a", "b", "c", "d"}
	for i, name := range names {
		mustPublish(t, p, state(name, i+1), 0, PublicationOptions{})
	}
	js.reaches("a")
	js.reaches("b")
	var got []string
	for head, err := range p.ReadAll(t.Context(), "local", kinds.Stores().GroupResource, false) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, head.Key.Name); len(got) == 2 {
			js.reaches("c")
			js.reaches("d")
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("heads are %v, want %v", got, names)
	}
}

func TestMissingMessageIsReadFromStreamLeader(t *testing.T) {
	js := bus(t, 0)
	p := New(js)
	ack := mustPublish(t, p, state("x", 1), 0, PublicationOptions{})
	if err := p.PublishMarker(t.Context(), &eventv1.SnapshotMarker{Cluster: "local", Group: key("x").Group, Resource: key("x").Resource}); err != nil {
		t.Fatal(err)
	}
	asked, err := js.Conn().SubscribeSync("$JS.API.DIRECT.GET.>") // Any replica answers these requests.
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		if err := js.Conn().Flush(); err != nil {
			t.Fatal(err)
		}
		n, _, err := asked.Pending()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := stream(t, js).GetMsg(t.Context(), ack.Sequence); err != nil || count() != 1 {
		t.Fatalf("a direct read is seen %d times, %v", count(), err)
	}
	mustLast(t, p, "x")
	mustPublish(t, p, state("x", 2), 99, PublicationOptions{})
	if _, err := p.ReadOldestEntry(t.Context(), "local", key("x").GroupResource); err != nil {
		t.Fatal(err)
	}
	if _, err := p.LastMarker(t.Context(), "local", key("x").GroupResource); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != 1 {
		t.Errorf("%d reads went to any replica", got-1)
	}
}
