package testenv

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/topology"
)

// DeleteDurable deletes the durable consumer of a service, if there is one. The service then receives every message
// again.
func (b *Env) DeleteDurable(service string) {
	b.T.Helper()
	if err := b.JS.DeleteConsumer(b.T.Context(), topology.Changes, service); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		b.T.Fatal(err)
	}
}

// RecreateStreams deletes the streams and creates empty ones, as after the loss of the NATS disk.
func (b *Env) RecreateStreams() {
	b.T.Helper()
	for _, stream := range []string{topology.Changes, topology.Sync} {
		if err := b.JS.DeleteStream(b.T.Context(), stream); err != nil {
			b.T.Fatal(err)
		}
	}
	if err := topology.EnsureStreams(b.T.Context(), b.JS, 1); err != nil {
		b.T.Fatal(err)
	}
}

// WipeAndReplay empties the streams and publishes all objects again.
func (r *Reflector) WipeAndReplay() {
	r.env.T.Helper()
	defer r.Pause()()
	r.env.RecreateStreams()
	r.Replay()
}

// RepublishAll publishes every message of the stream again, in random order. Before each message it publishes the
// state that the object had at the previous call of RepublishAll.
func (r *Reflector) RepublishAll() {
	r.env.T.Helper()
	defer r.Pause()()
	b := r.env
	stream, err := b.JS.Stream(b.T.Context(), topology.Changes)
	if err != nil {
		b.T.Fatal(err)
	}
	info, err := stream.Info(b.T.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		b.T.Fatal(err)
	}
	before := r.repeated
	r.repeated = map[string]*nats.Msg{}
	for subject := range info.State.Subjects {
		last, err := stream.GetLastMsgForSubject(b.T.Context(), subject)
		if err != nil {
			b.T.Fatal(err)
		}
		r.repeated[subject] = withoutServerHeaders(last)
		for _, msg := range []*nats.Msg{before[subject], r.repeated[subject]} {
			if msg == nil {
				continue
			}
			if _, err := b.JS.PublishMsg(b.T.Context(), msg); err != nil {
				b.T.Fatal(err)
			}
		}
	}
}

// withoutServerHeaders returns a stored message without the headers that NATS interprets.
func withoutServerHeaders(stored *jetstream.RawStreamMsg) *nats.Msg {
	msg := &nats.Msg{Subject: stored.Subject, Data: stored.Data, Header: nats.Header{}}
	for name, values := range stored.Header {
		if strings.HasPrefix(name, "Entail-") {
			msg.Header[name] = values
		}
	}
	return msg
}
