//go:build integration

package query

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/nats-io/nats.go"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestDiscardDeadLetterRemovesLetterAndMalformedMessage(t *testing.T) {
	const nonsense = "entail.changes.nonsense.core%2Eplatform-mesh%2Eio.stores.x"
	for name, tc := range map[string]struct {
		// put publishes the message and returns its sequence and subject.
		put     func(b *queryEnv) (uint64, string)
		removed bool
	}{
		"a subject that names no object": {func(b *queryEnv) (uint64, string) {
			return b.send(&nats.Msg{Subject: nonsense, Data: []byte("?")}), nonsense
		}, true},
		"an object that was never there": {func(b *queryEnv) (uint64, string) {
			subject := topology.ChangeSubject(key("ghost"))
			return b.send(&nats.Msg{Subject: subject, Data: []byte("?")}), subject
		}, true},
		"a change": {func(b *queryEnv) (uint64, string) {
			return b.exists(state("x", 10)).Sequence, topology.ChangeSubject(key("x"))
		}, false},
		"a message that another took the place of": {func(b *queryEnv) (uint64, string) {
			subject := topology.ChangeSubject(key("x"))
			sequence := b.send(&nats.Msg{Subject: subject, Data: []byte("?")})
			b.send(&nats.Msg{Subject: subject, Data: []byte("?")})
			return sequence, subject
		}, false},
		"a message that is not the letter's": {func(b *queryEnv) (uint64, string) {
			return b.send(&nats.Msg{Subject: topology.ChangeSubject(key("ghost")), Data: []byte("?")}), nonsense
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newQueryEnv(t)
			sequence, subject := tc.put(b)
			id := b.letterOf(sequence, topology.StoreSync, subject, []byte("?"))
			before := b.messages()
			got, err := b.DiscardDeadLetter(t.Context(), &syncv1.DiscardDeadLetterRequest{Id: id})
			if err != nil || got.GetMessageRemoved() != tc.removed || got.GetDeadLetter().GetId() != id {
				t.Errorf("answer is %v, %v", got, err)
			}
			if (b.messages() < before) != tc.removed {
				t.Errorf("the stream holds %d messages, %d before", b.messages(), before)
			}
			_, err = b.DiscardDeadLetter(t.Context(), &syncv1.DiscardDeadLetterRequest{Id: id})
			expectRefused(t, err, connect.CodeNotFound, "replayed or discarded")
		})
	}
}

// messages returns the number of messages on the stream of changes.
func (b *queryEnv) messages() uint64 {
	b.t.Helper()
	s, err := b.js.Stream(b.t.Context(), topology.Changes)
	if err != nil {
		b.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}
