package natsauth_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/natsauth"
	"github.com/entail-dev/entail/services/internal/topology"
)

const storedChange = "entail.changes.local.rbac%2Eauthorization%2Ek8s%2Eio.rolebindings.n0.b0"

// createPushConsumer creates an ephemeral consumer of all changes that delivers to a subject. It returns the error of
// JetStream.
func (u *userConnection) createPushConsumer(name, target string, headersOnly bool) error {
	u.t.Helper()
	const filter = "entail.changes.>"
	request, err := json.Marshal(map[string]any{"stream_name": topology.Changes, "config": map[string]any{
		"name": name, "deliver_subject": target, "filter_subject": filter, "headers_only": headersOnly, "mem_storage": true,
		"deliver_policy": "all", "ack_policy": "none", "replay_policy": "instant", "num_replicas": 1, "inactive_threshold": time.Minute,
	}})
	if err != nil {
		u.t.Fatal(err)
	}
	answer, err := u.conn.Request("$JS.API.CONSUMER.CREATE."+topology.Changes+"."+name+"."+filter, request, time.Minute)
	if err != nil {
		u.t.Fatal(err)
	}
	var created struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &created); err != nil {
		u.t.Fatal(err)
	}
	if created.Error != nil {
		return created.Error
	}
	return nil
}

// TestPushConsumerOfStolenCredentialOnlyCopiesChanges holds what docs/design/security.md states: NATS restricts no
// deliver_subject, but what arrives there is a stored change with its own subject. So it is no request, no
// acknowledgement and no other change.
func TestPushConsumerOfStolenCredentialOnlyCopiesChanges(t *testing.T) {
	s := start(t)
	createStreamsAndConsumers(t, s)
	admin, victim, thief := connect(t, s, natsauth.Admin), connect(t, s, topology.ImpliedRole), connect(t, s, topology.StoreSync)
	if _, err := connect(t, s, topology.Watcher).js.Publish(t.Context(), storedChange, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	received, err := victim.conn.SubscribeSync(victim.conn.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	work := victim.fetchOne()
	before := admin.describeStreams()

	targets := []string{
		work, "$JS.API.CONSUMER.DELETE." + topology.Changes + "." + topology.ImpliedRole,
		storedChange, topology.ResyncSubject(topology.Watcher), "entail.sync.local.x", "entail.results." + topology.ImpliedRole + ".x",
	}
	for _, stream := range topology.StreamNames() {
		targets = append(targets, "$JS.API.STREAM.PURGE."+stream, "$JS.API.STREAM.DELETE."+stream, "$JS.API.STREAM.MSG.DELETE."+stream)
	}
	for i, target := range targets {
		for _, headersOnly := range []bool{false, true} { // A message without a body is a purge, and an acknowledgement.
			if err := thief.createPushConsumer(fmt.Sprintf("thief%d%t", i, headersOnly), target, headersOnly); err != nil && !strings.Contains(err.Error(), "deliver subject forms a cycle") {
				t.Errorf("delivering to %s: %v", target, err)
			}
		}
	}
	// This consumer comes last: when its message arrives, the others were active.
	if err := thief.createPushConsumer("thief", received.Subject, false); err != nil {
		t.Error(err)
	}
	m, err := received.NextMsg(time.Minute)
	if err != nil {
		t.Fatalf("the inbox receives nothing: %v", err)
	}
	if string(m.Data) != "{}" {
		t.Errorf("got %q, want the stored change", m.Data)
	}
	if got := admin.describeStreams(); !slices.Equal(got, before) {
		t.Errorf("got streams %q, want %q", got, before)
	}
}

// fetchOne receives one message from the durable consumer, and returns the subject that acknowledges it.
func (u *userConnection) fetchOne() string {
	u.t.Helper()
	inbox, err := u.conn.SubscribeSync(u.conn.NewInbox())
	if err != nil {
		u.t.Fatal(err)
	}
	request := fmt.Sprintf(`{"batch":1,"expires":%d,"group":%q}`, time.Minute, topology.PriorityGroup)
	if err := u.conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+topology.Changes+"."+topology.ImpliedRole, inbox.Subject, []byte(request)); err != nil {
		u.t.Fatal(err)
	}
	m, err := inbox.NextMsg(time.Minute)
	if err != nil || m.Reply == "" {
		u.t.Fatalf("got %v, %v, want a message to acknowledge", m, err)
	}
	return m.Reply
}

// describeStreams returns the content of each stream, and the unsettled messages of each durable consumer.
func (u *userConnection) describeStreams() []string {
	u.t.Helper()
	var all []string
	for _, name := range topology.StreamNames() {
		stream, err := u.js.Stream(u.t.Context(), name)
		if err != nil {
			u.t.Fatal(err)
		}
		state := stream.CachedInfo().State
		all = append(all, fmt.Sprintf("%s: %d messages to %d", name, state.Msgs, state.LastSeq))
	}
	for _, service := range topology.DurableServices() {
		durable, err := u.js.Consumer(u.t.Context(), topology.Changes, service.Name)
		if err != nil {
			u.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s: %d unsettled", service.Name, durable.CachedInfo().NumAckPending))
	}
	return all
}
