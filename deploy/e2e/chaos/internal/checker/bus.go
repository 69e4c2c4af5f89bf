package checker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// RequiredStreams returns the streams that must exist.
func RequiredStreams() []string {
	return []string{"ENTAIL_CHANGES", "ENTAIL_SYNC", "ENTAIL_RESULTS", "ENTAIL_DEADLETTERS"}
}

const (
	changes     = "ENTAIL_CHANGES"
	deadLetters = "ENTAIL_DEADLETTERS"
)

// Bus reads NATS directly.
type Bus struct {
	conn *nats.Conn
	JS   jetstream.JetStream
	// Durables holds the durable consumers of the services.
	Durables []string
}

// DialNATS connects to any of several servers, and reconnects without limit.
func DialNATS(urls string, durables []string) (*Bus, error) {
	conn, err := nats.Connect(urls, nats.MaxReconnects(-1), nats.ReconnectWait(200*time.Millisecond),
		nats.PingInterval(2*time.Second), nats.RetryOnFailedConnect(true))
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	return &Bus{conn: conn, JS: js, Durables: durables}, nil
}

// Close ends the connection.
func (b *Bus) Close() { b.conn.Close() }

// checkBus requires that all streams exist, and that no dead letter and no pending message exists.
func checkBus(ctx context.Context, w *CheckedSystem) error {
	var errs []error
	for _, name := range RequiredStreams() {
		stream, err := w.Bus.JS.Stream(ctx, name)
		if err != nil {
			errs = append(errs, w.Bus.reconnectUnlessAnswered(fmt.Errorf("stream %s: %w", name, err)))
			continue
		}
		if n := stream.CachedInfo().State.Msgs; name == deadLetters && n > 0 {
			errs = append(errs, fmt.Errorf("there are %d dead letters", n))
		}
	}
	return errors.Join(append(errs, w.Bus.CaughtUpErr(ctx))...)
}

// CaughtUpErr returns nil if every service has acknowledged every message.
func (b *Bus) CaughtUpErr(ctx context.Context) error {
	var errs []error
	for _, name := range b.Durables {
		consumer, err := b.JS.Consumer(ctx, changes, name)
		if err != nil {
			errs = append(errs, b.reconnectUnlessAnswered(fmt.Errorf("durable %s: %w", name, err)))
			continue
		}
		if info := consumer.CachedInfo(); info.AckFloor.Consumer == 0 || info.NumPending+uint64(info.NumAckPending) > 0 {
			errs = append(errs, fmt.Errorf("durable %s: %d pending, %d not acknowledged", name, info.NumPending, info.NumAckPending))
		}
	}
	return errors.Join(errs...)
}

// reconnectUnlessAnswered returns err. It reconnects to another server unless err is a definite answer, because the present server
// may be cut off from the others.
func (b *Bus) reconnectUnlessAnswered(err error) error {
	if !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		_ = b.conn.ForceReconnect() // This fails only during a reconnect.
	}
	return err
}

// ReplayAll deletes the durable of every service, and makes every service compare everything with its backends. It repeats
// a request without an answer: services that have just started may slow a busy machine down.
func (b *Bus) ReplayAll(ctx context.Context) error {
	for _, name := range b.Durables {
		err := b.retryUntilTimeout(ctx, func(ctx context.Context) error {
			err := b.JS.DeleteConsumer(ctx, changes, name)
			if errors.Is(err, jetstream.ErrConsumerNotFound) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("deleting durable %s: %w", name, err)
		}
	}
	for _, name := range b.Durables {
		msg := nats.NewMsg("entail.wake." + name)
		msg.Header.Set("Entail-Replay", "everything")
		err := b.retryUntilTimeout(ctx, func(ctx context.Context) error {
			_, err := b.JS.PublishMsg(ctx, msg)
			return err
		})
		if err != nil {
			return fmt.Errorf("waking %s: %w", name, err)
		}
	}
	return nil
}

const (
	// replayWithin bounds one request of a replay with all its attempts; replayAttempt bounds one attempt.
	replayWithin, replayAttempt = time.Minute, 5 * time.Second
)

// retryUntilTimeout calls request until it succeeds or replayWithin has passed.
func (b *Bus) retryUntilTimeout(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, replayWithin)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, replayAttempt)
		err := request(attempt)
		done()
		if err == nil || ctx.Err() != nil {
			return err
		}
		sleepContext(ctx, pause)
	}
}
