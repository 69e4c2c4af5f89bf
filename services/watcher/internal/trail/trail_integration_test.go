//go:build integration

package trail

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func bus(t *testing.T) jetstream.JetStream {
	t.Helper()
	js := testenv.StartNATS(t).JetStream(t)
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	return js
}

func key(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: name}
}

func send(t *testing.T, js jetstream.JetStream, subject string, data []byte) {
	t.Helper()
	if _, err := js.Publish(t.Context(), subject, data); err != nil {
		t.Fatal(err)
	}
}

func TestLatestResultsReturnsNewestPerService(t *testing.T) {
	js := bus(t)
	for _, version := range []string{"1", "2"} {
		data, err := proto.Marshal(&eventv1.ResourceResult{Service: topology.TupleSync, ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		send(t, js, topology.ResultSubject(topology.TupleSync, key("x")), data)
	}
	results, err := New(js).LatestResults(t.Context(), key("x"))
	if err != nil || len(results) != 1 || results[0].GetResourceVersion() != "2" {
		t.Errorf("results are %v, %v", results, err)
	}
	send(t, js, topology.ResultSubject(topology.StoreSync, key("x")), []byte("\xff"))
	if _, err := New(js).LatestResults(t.Context(), key("x")); err == nil || !strings.Contains(err.Error(), "result of store-sync for") {
		t.Errorf("error is %v", err)
	}
}

func TestServiceProgressFollowsConsumer(t *testing.T) {
	js := bus(t)
	for i := range 3 {
		send(t, js, topology.ChangeSubject(key(fmt.Sprint(i))), nil)
	}
	service, _ := topology.FindService(topology.StoreSync)
	consumer, err := topology.EnsureConsumer(t.Context(), js, service, topology.DefaultTakeoverBounds())
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(1), jetstream.PullPriorityGroup(topology.PriorityGroup))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(messages.Stop)
	msg, err := messages.Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := msg.DoubleAck(t.Context()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, time.Minute, func() error {
		all, err := New(js).ListServiceProgress(t.Context())
		if err != nil {
			return err
		}
		p := all[0]
		if p.Service != topology.StoreSync || p.Pending+p.InFlight != 2 || time.Since(p.LastAckAt) > time.Minute {
			return fmt.Errorf("progress is %+v", p)
		}
		return nil
	})
}

func TestServiceProgressWithoutConsumerCountsItsKinds(t *testing.T) {
	js := bus(t)
	for i := range 3 {
		send(t, js, topology.ChangeSubject(key(fmt.Sprint(i))), nil)
	}
	all, err := New(js).ListServiceProgress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pending := map[string]uint64{}
	for _, p := range all {
		pending[p.Service] = p.Pending
	}
	want := map[string]uint64{topology.StoreSync: 3, topology.TupleSync: 3, topology.ImpliedRole: 0, topology.OpensearchSync: 0}
	if !maps.Equal(pending, want) {
		t.Errorf("pending are %v, want %v", pending, want)
	}
}

func TestListDeadLettersIsBoundedAndContinues(t *testing.T) {
	js := bus(t)
	const others = maxScan + 10
	send(t, js, topology.DeadLetterSubject("wanted", "x"), nil)
	for i := range others {
		msg := nats.NewMsg(topology.DeadLetterSubject("other", fmt.Sprint(i)))
		msg.Header.Set(topology.ServiceHeader, "other")
		if _, err := js.PublishMsgAsync(msg, jetstream.WithStallWait(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	letters, next, err := New(js).ListDeadLetters(t.Context(), "wanted", 0, 1)
	if err != nil || len(letters) != 0 || next == 0 {
		t.Errorf("%d letters, next %d, %v; want none and a place to go on", len(letters), next, err)
	}
	letters, next, err = New(js).ListDeadLetters(t.Context(), "other", 0, others)
	if err != nil || len(letters) != maxScan || next != others+1-maxScan+1 {
		t.Errorf("%d letters, next %d, %v", len(letters), next, err)
	}
}

func TestMissingStreamsAreUnavailable(t *testing.T) {
	trail := New(testenv.StartNATS(t).JetStream(t))
	for name, err := range map[string]error{
		"results":  second(trail.LatestResults(t.Context(), key("x"))),
		"bus":      second(trail.ChangesStreamState(t.Context())),
		"progress": second(trail.ListServiceProgress(t.Context())),
		"letter":   second(trail.GetDeadLetter(t.Context(), 1)),
		"discard":  trail.DiscardDeadLetter(t.Context(), 1),
	} {
		if !fault.IsUnavailable(err) {
			t.Errorf("%s: %v, want one marked unavailable", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
