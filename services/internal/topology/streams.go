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

// Names of the streams.
const (
	Changes     = "ENTAIL_CHANGES"
	Sync        = "ENTAIL_SYNC"
	Results     = "ENTAIL_RESULTS"
	DeadLetters = "ENTAIL_DEADLETTERS"
)

// PriorityGroup is the priority group of every durable consumer. JetStream pins one replica of the group, and the other
// replicas are standby.
const PriorityGroup = "active"

const (
	dedupWindow   = 2 * time.Minute
	deadLetterAge = 30 * 24 * time.Hour
	// maxWaiting bounds the waiting pull requests. It is the server's default.
	maxWaiting = 512
	// MaxAckPending bounds the unsettled messages of one service. The server delivers no further message at this
	// limit.
	MaxAckPending = 4096
)

// TombstoneTTL is the default lifetime of a tombstone.
const TombstoneTTL = 7 * 24 * time.Hour

// TakeoverBounds bounds how soon a standby replica replaces a leader that has stopped. All replicas of a service need
// the same bounds.
type TakeoverBounds struct {
	// LeaseLifetime is the lifetime of a lease after it was sent.
	LeaseLifetime time.Duration
	// PinTimeout bounds how long a dead leader delays the next one. It is at least 2 s.
	PinTimeout time.Duration
	// SettlingTime bounds the time in which requests of a former leader may still take effect.
	SettlingTime time.Duration
}

// DefaultTakeoverBounds returns the bounds that services use. Tests use shorter ones.
func DefaultTakeoverBounds() TakeoverBounds {
	return TakeoverBounds{LeaseLifetime: 3 * time.Second, PinTimeout: 4 * time.Second, SettlingTime: 10 * time.Second}
}

// AckWait returns the time after which the server delivers an unsettled message again. A consumer extends it while it
// works on the message. Together with PinTimeout it bounds how long a frozen replica delays the messages that it
// received.
func (t TakeoverBounds) AckWait() time.Duration { return 2 * t.LeaseLifetime }

// PullExpiry returns the lifetime of a consumer's pull request. It is so short that a running replica sends two
// requests within PinTimeout.
func (t TakeoverBounds) PullExpiry() time.Duration { return t.PinTimeout / 2 }

// StreamNames lists the names of all streams.
func StreamNames() []string {
	var names []string
	for _, stream := range streamConfigs(1) {
		names = append(names, stream.Name)
	}
	return names
}

// streamConfigs returns the definitions of all streams, including the fields that the server would set.
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

// EnsureConsumer returns the durable consumer of a service. It creates or updates the consumer only if necessary. If
// several replicas send the same request to a cluster at the same time, some receive no answer.
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
	filters := []string{ResyncSubject(service.Name)}
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
		PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{PriorityGroup}, PinnedTTL: takeover.PinTimeout,
	}
}

// StreamID returns the creation time of a stream, which identifies its life. A stream that was deleted and created
// again has another ID.
func StreamID(info *jetstream.StreamInfo) string {
	return info.Created.UTC().Format(time.RFC3339Nano)
}

// DecodeChange decodes a message of [Changes], including the times at which it was stored and expires. See
// [DecodeRawChange].
func DecodeChange(msg jetstream.Msg) (event.Change, error) {
	change, err := DecodeRawChange(msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		return event.Change{}, fault.Terminal(err)
	}
	meta, err := msg.Metadata()
	if err != nil {
		return change, nil //nolint:nilerr // The change is valid; only its time, sequence and expiry are unknown.
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

// IsSequenceConflict reports whether a message was refused because its expected sequence was wrong. A replicated stream
// returns a second error code while another message on the subject is being stored.
func IsSequenceConflict(err error) bool {
	refusal, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
