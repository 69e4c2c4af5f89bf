package results

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/entail-dev/entail/services/internal/backoff"
)

const (
	// publishTimeout bounds the wait for one acknowledgement.
	publishTimeout = 3 * time.Second
	// flushTimeout bounds the flush at shutdown.
	flushTimeout = time.Second
	// batch bounds the messages of one round of publishing.
	batch = 256
)

// outbox publishes messages in the background and retries each until it is acknowledged. Callers do not wait.
type outbox struct {
	js  jetstream.JetStream
	log *slog.Logger
	// mayPublish reports whether publishing is allowed now.
	mayPublish func() bool
	// sending is held while messages are in flight.
	sending sync.Mutex

	mu sync.Mutex
	// waiting holds the unacknowledged messages by subject. order holds their subjects in the order of arrival.
	waiting map[string]*outgoingMessage
	order   []string
	// more signals that a message was added.
	more chan struct{}
}

type outgoingMessage struct {
	subject string
	data    []byte
	options []jetstream.PublishOpt
}

func newOutbox(js jetstream.JetStream, mayPublish func() bool, log *slog.Logger) *outbox {
	return &outbox{js: js, log: log, mayPublish: mayPublish, waiting: map[string]*outgoingMessage{}, more: make(chan struct{}, 1)}
}

// putMessage adds m. It replaces a waiting message with the same subject.
func (o *outbox) putMessage(m *outgoingMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting[m.subject] == nil {
		o.order = append(o.order, m.subject)
	}
	o.waiting[m.subject] = m
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// waitingMessage returns the waiting message on a subject, or nil.
func (o *outbox) waitingMessage(subject string) *outgoingMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting[subject]
}

// removeMessage removes m, unless another message has replaced it.
func (o *outbox) removeMessage(m *outgoingMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting[m.subject] == m {
		delete(o.waiting, m.subject)
	}
}

// dropWaiting removes all waiting messages.
func (o *outbox) dropWaiting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.waiting)
	o.order = nil
}

// nextBatch returns at most batch waiting messages, the oldest first. It does not read the rest of the queue, which
// may be long.
func (o *outbox) nextBatch() []*outgoingMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	var first []*outgoingMessage
	seen := 0
	for ; seen < len(o.order) && len(first) < batch; seen++ {
		if m := o.waiting[o.order[seen]]; m != nil {
			first = append(first, m)
		}
	}
	o.order = o.order[seen-len(first):]
	for i, m := range first {
		o.order[i] = m.subject
	}
	return first
}

// runOutbox publishes until ctx ends.
func (o *outbox) runOutbox(ctx context.Context) {
	delays := backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for attempt := 1; ctx.Err() == nil; {
		messages := o.nextBatch()
		if len(messages) == 0 {
			select {
			case <-ctx.Done():
			case <-o.more:
			}
			continue
		}
		if !o.mayPublish() {
			backoff.Sleep(ctx, delays.Min)
			continue
		}
		err := o.publishBatch(ctx, messages)
		if err == nil {
			attempt = 1
			continue
		}
		o.log.WarnContext(ctx, "messages not published; trying again", slog.Int("waiting", len(messages)), slog.Any("error", err))
		delays.Wait(ctx, attempt)
		attempt++
	}
}

// flushOnce tries once to publish the waiting messages, if NATS is connected.
func (o *outbox) flushOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	for messages := o.nextBatch(); len(messages) > 0 && o.mayPublish() && o.js.Conn().IsConnected(); messages = o.nextBatch() {
		if err := o.publishBatch(ctx, messages); err != nil {
			o.log.WarnContext(ctx, "messages not published before the end", slog.Int("waiting", len(messages)), slog.Any("error", err))
			return
		}
	}
}

// publishBatch publishes messages and waits for their acknowledgements. It returns the first error.
func (o *outbox) publishBatch(ctx context.Context, messages []*outgoingMessage) error {
	o.sending.Lock()
	defer o.sending.Unlock()
	var group errgroup.Group
	group.SetLimit(parallelResults)
	for _, m := range messages {
		if o.waitingMessage(m.subject) == m {
			group.Go(func() error { return o.publishOne(ctx, m) })
		}
	}
	return group.Wait()
}

func (o *outbox) publishOne(ctx context.Context, m *outgoingMessage) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := o.js.Publish(ctx, m.subject, m.data, m.options...)
	if err != nil {
		return fmt.Errorf("publish on %s: %w", m.subject, err)
	}
	o.removeMessage(m)
	return nil
}
