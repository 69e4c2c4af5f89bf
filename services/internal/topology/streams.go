package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// Streams.
const (
	Changes     = "ENTAIL_CHANGES"
	Sync        = "ENTAIL_SYNC"
	Results     = "ENTAIL_RESULTS"
	DeadLetters = "ENTAIL_DEADLETTERS"
)

// Group is the priority group of every durable consumer: one replica is pinned, the others stand by.
const Group = "active"

const (
	dedupWindow   = 2 * time.Minute
	deadLetterAge = 30 * 24 * time.Hour
	// maxWaiting bounds the waiting pull requests. It is the default of the server.
	maxWaiting = 512
	// MaxAckPending bounds the unsettled messages of one service. The server delivers no more beyond it.
	MaxAckPending = 4096
)

// TombstoneTTL is the default lifetime of a tombstone.
const TombstoneTTL = 7 * 24 * time.Hour

// TakeoverBounds bounds how soon another replica takes the turn of one that is gone. All replicas of a service need the same
// bounds.
type TakeoverBounds struct {
	// Claim is the lifetime of a claim after it was sent.
	Claim time.Duration
	// Pin bounds how long a dead replica delays the next one. At least 2 s.
	Pin time.Duration
	// Settling bounds the time in which requests of a replica that lost its turn may still take effect.
	Settling time.Duration
}

// DefaultTakeoverBounds returns the bounds that services use. Tests shorten them.
func DefaultTakeoverBounds() TakeoverBounds {
	return TakeoverBounds{Claim: 3 * time.Second, Pin: 4 * time.Second, Settling: 10 * time.Second}
}

// AckWait returns the lease on a message. Consumers renew it while they work. Together with Pin it bounds how long a
// frozen replica delays the messages that it received.
func (t TakeoverBounds) AckWait() time.Duration { return 2 * t.Claim }

// PullExpiry returns the lifetime of a pull request of a consumer. A living replica sends one twice within Pin.
func (t TakeoverBounds) PullExpiry() time.Duration { return t.Pin / 2 }

// StreamNames lists the names of all streams.
func StreamNames() []string {
	var names []string
	for _, stream := range streamConfigs(1) {
		names = append(names, stream.Name)
	}
	return names
}

// streamConfigs returns the table, with all fields that the server would fill in.
func streamConfigs(replicas int) []jetstream.StreamConfig {
	newest := func(name, description string, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Description: description, Subjects: subjects, Replicas: replicas,
			Storage: jetstream.FileStorage, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld,
			AllowDirect: true, AllowMsgTTL: true, Duplicates: dedupWindow,
			MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1,
		}
	}
	letters := newest(DeadLetters, "what could not be processed", deadLettersPrefix+">")
	letters.MaxMsgsPerSubject, letters.MaxAge = -1, deadLetterAge
	return []jetstream.StreamConfig{
		newest(Changes, "the newest state of every object", changesPrefix+">", targetsPrefix+">", barrierPrefix+"*", wakePrefix+"*"),
		newest(Sync, "snapshot markers", syncPrefix+">"),
		newest(Results, "what services did with objects", resultsPrefix+">"),
		letters,
	}
}

// EnsureConsumer returns the durable consumer of a service. It creates or updates the consumer only if necessary: if
// several replicas send the same request to a cluster at once, some get no answer.
func EnsureConsumer(ctx context.Context, js jetstream.JetStream, service Service, takeover TakeoverBounds) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	want := consumerConfig(service, takeover)
	c, err := js.Consumer(ctx, Changes, service.Name)
	if err == nil && len(differingFields(withoutServerFields(c.CachedInfo().Config), want)) == 0 {
		return c, nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("look up durable %s: %w", service.Name, err)
	}
	if c, err = js.CreateOrUpdateConsumer(ctx, Changes, want); err != nil {
		return nil, fmt.Errorf("create or update durable %s: %w", service.Name, err)
	}
	return c, nil
}

// withoutServerFields removes the fields that the server adds.
func withoutServerFields(c jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	c.Name, c.Metadata = "", nil
	return c
}

func consumerConfig(service Service, takeover TakeoverBounds) jetstream.ConsumerConfig {
	filters := []string{WakeSubject(service.Name)}
	for _, r := range service.Kinds {
		filters = append(filters, ChangesFilter("", r))
	}
	if service.Targets {
		filters = append(filters, ChangesFilter("", kinds.AllTargets()))
	}
	return jetstream.ConsumerConfig{
		Durable: service.Name, FilterSubjects: filters,
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: takeover.AckWait(), MaxDeliver: -1, MaxAckPending: MaxAckPending, MaxWaiting: maxWaiting,
		PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{Group}, PinnedTTL: takeover.Pin,
	}
}

// StreamID names one life of a stream by its creation time. A stream that was deleted and created again has another.
func StreamID(info *jetstream.StreamInfo) string {
	return info.Created.UTC().Format(time.RFC3339Nano)
}

// DecodeChange decodes a message of [Changes], with the times at which it was stored and expires. See [DecodeRawChange].
func DecodeChange(msg jetstream.Msg) (event.Change, error) {
	change, err := DecodeRawChange(msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		return event.Change{}, fault.Terminal(err)
	}
	meta, err := msg.Metadata()
	if err != nil {
		return change, nil //nolint:nilerr // The change is readable; when it was published cannot be told.
	}
	if change.PublishedAt = meta.Timestamp; msg.Subject() == ChangeSubject(change.Key) {
		change.Sequence = meta.Sequence.Stream
	} else {
		change.TombstoneSequence = meta.Sequence.Stream
	}
	if ttl, err := time.ParseDuration(msg.Headers().Get(jetstream.MsgTTLHeader)); err == nil {
		change.ExpiresAt = meta.Timestamp.Add(ttl)
	}
	return change, nil
}
