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
	Announce    = "ENTAIL_ANNOUNCE"
	DeadLetters = "ENTAIL_DEADLETTERS"
)

// Group is the priority group of every durable: one replica is pinned, the others stand by.
const Group = "active"

const (
	dedupWindow      = 2 * time.Minute
	announceAge      = 10 * time.Minute
	deadLetterAge    = 30 * 24 * time.Hour
	announceMessages = 100_000
	// maxWaiting bounds the pulls that wait; it is a server's own default.
	maxWaiting = 512
	// MaxAckPending bounds how many messages one service works on or retries at a time: beyond,
	// it is sent no more.
	MaxAckPending = 4096
)

// TombstoneTTL is how long the bus remembers a deletion unless the watcher is told otherwise.
const TombstoneTTL = 7 * 24 * time.Hour

// Takeover bounds how soon another replica takes the turn of one that is gone. All replicas of a
// service need the same.
type Takeover struct {
	// Claim bounds how long a replica is sure of its turn after it has sent a claim.
	Claim time.Duration
	// Pin bounds how long the server sends messages to a dead replica only. At least 2 s.
	Pin time.Duration
	// Settling bounds how long the calls of a replica that lost its turn may still take effect.
	Settling time.Duration
}

// DefaultTakeover returns the bounds that services use. Tests shorten them.
func DefaultTakeover() Takeover {
	return Takeover{Claim: 3 * time.Second, Pin: 4 * time.Second, Settling: 10 * time.Second}
}

// AckWait returns the lease on a message; consumers renew it while they work. It bounds, with Pin,
// how long a frozen replica holds up what it was sent.
func (t Takeover) AckWait() time.Duration { return 2 * t.Claim }

// PullExpiry returns how long one pull request of a consumer lives. A living replica shows itself
// that often, twice within Pin.
func (t Takeover) PullExpiry() time.Duration { return t.Pin / 2 }

// Streams lists the names of all streams.
func Streams() []string {
	var names []string
	for _, stream := range streams(1) {
		names = append(names, stream.Name)
	}
	return names
}

// streams is the table, with all that a server would fill in.
func streams(replicas int) []jetstream.StreamConfig {
	newest := func(name, description string, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Description: description, Subjects: subjects, Replicas: replicas,
			Storage: jetstream.FileStorage, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld,
			AllowDirect: true, AllowMsgTTL: true, Duplicates: dedupWindow,
			MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1,
		}
	}
	announce := newest(Announce, "model and tuple changes, for caches", announcePrefix+"*")
	announce.MaxMsgsPerSubject, announce.MaxAge, announce.MaxMsgs = -1, announceAge, announceMessages
	letters := newest(DeadLetters, "what could not be processed", deadLettersPrefix+">")
	letters.MaxMsgsPerSubject, letters.MaxAge = -1, deadLetterAge
	return []jetstream.StreamConfig{
		newest(Changes, "the newest state of every object", changesPrefix+">", targetsPrefix+">", wakePrefix+"*"),
		newest(Sync, "snapshot markers", syncPrefix+">"),
		newest(Results, "what services did with objects", resultsPrefix+">"),
		announce, letters,
	}
}

// EnsureConsumer binds to the durable of one service. It is made or changed only if it must be: of
// replicas that ask a cluster for the same at once, not every one gets an answer.
func EnsureConsumer(ctx context.Context, js jetstream.JetStream, service Service, takeover Takeover) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	want := consumer(service, takeover)
	c, err := js.Consumer(ctx, Changes, service.Name)
	if err == nil && len(differing(plainConsumer(c.CachedInfo().Config), want)) == 0 {
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

// plainConsumer leaves out what a server adds.
func plainConsumer(c jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	c.Name, c.Metadata = "", nil
	return c
}

func consumer(service Service, takeover Takeover) jetstream.ConsumerConfig {
	filters := []string{WakeSubject(service.Name)}
	for _, r := range service.Kinds {
		filters = append(filters, ChangesFilter("", r))
	}
	if service.Targets {
		filters = append(filters, ChangesFilter("", kinds.Targets()))
	}
	return jetstream.ConsumerConfig{
		Durable: service.Name, FilterSubjects: filters,
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: takeover.AckWait(), MaxDeliver: -1, MaxAckPending: MaxAckPending, MaxWaiting: maxWaiting,
		PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{Group}, PinnedTTL: takeover.Pin,
	}
}

// Incarnation names one life of a stream: deleted and created again, it is another.
func Incarnation(info *jetstream.StreamInfo) string {
	return info.Created.UTC().Format(time.RFC3339Nano)
}

// DecodeChange reads a message of [Changes]. Its error is terminal: the message will never be readable.
func DecodeChange(msg jetstream.Msg) (event.Change, error) {
	key, uid, err := ParseChangeSubject(msg.Subject())
	if err != nil {
		return event.Change{}, fault.Terminal(err)
	}
	change, err := event.Unmarshal(key, msg.Data())
	if err == nil && uid != "" && (change.UID != uid || !change.Deleted) {
		err = fmt.Errorf("the tombstone of UID %s of %s says that of %s: deleted is %v", uid, key, change.UID, change.Deleted)
	}
	if err != nil {
		return event.Change{}, fault.Terminal(err)
	}
	meta, err := msg.Metadata()
	if err != nil {
		return change, nil //nolint:nilerr // The change is readable; when it was published cannot be told.
	}
	change.PublishedAt = meta.Timestamp
	if ttl, err := time.ParseDuration(msg.Headers().Get(jetstream.MsgTTLHeader)); err == nil {
		change.ExpiresAt = meta.Timestamp.Add(ttl)
	}
	return change, nil
}
