package topology

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
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
	// AckWait is the lease on a message; consumers renew it while they work. It bounds, with
	// pinnedTTL, how long a frozen replica holds up what it was sent.
	AckWait = 6 * time.Second
	// pinnedTTL bounds how long a dead replica holds up the next one. It must exceed
	// PullExpiry, which is how often a living one shows itself.
	pinnedTTL = 4 * time.Second
	// SurelyActive is for how long a replica may be sure of its turn after it has sent a claim of it.
	SurelyActive = 3 * time.Second
	// MaxAckPending bounds how many messages one service works on or retries at a time: beyond,
	// it is sent no more.
	MaxAckPending = 4096
)

const (
	// Settling is how long the calls of a replica that has lost its place may take to come to pass.
	Settling = 10 * time.Second
	// Lately is how long before it lost its place a replica may have begun what came to pass after.
	Lately = time.Minute
)

// TombstoneTTL is how long the bus remembers a deletion unless the watcher is told otherwise.
const TombstoneTTL = 7 * 24 * time.Hour

// PullExpiry is how long one pull request of a consumer lives; see pinnedTTL.
const PullExpiry = 2 * time.Second

// Ensure creates or updates all streams with the given number of replicas. Every
// service calls it at start; the table is the same, so the order does not matter.
func Ensure(ctx context.Context, js jetstream.JetStream, replicas int) error {
	for _, stream := range streams(replicas) {
		if _, err := js.CreateOrUpdateStream(ctx, stream); err != nil {
			return fmt.Errorf("create or update stream %s: %w", stream.Name, err)
		}
	}
	return nil
}

func streams(replicas int) []jetstream.StreamConfig {
	newest := func(name, description string, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Description: description, Subjects: subjects, Replicas: replicas,
			Storage: jetstream.FileStorage, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardOld,
			AllowDirect: true, AllowMsgTTL: true, Duplicates: dedupWindow,
		}
	}
	announce := newest(Announce, "model and tuple changes, for caches", announcePrefix+"*")
	announce.MaxMsgsPerSubject, announce.MaxAge, announce.MaxMsgs = -1, announceAge, announceMessages
	letters := newest(DeadLetters, "what could not be processed", deadLettersPrefix+">")
	letters.MaxMsgsPerSubject, letters.MaxAge = -1, deadLetterAge
	return []jetstream.StreamConfig{
		newest(Changes, "the newest state of every object", changesPrefix+">", wakePrefix+"*"),
		newest(Sync, "snapshot markers", syncPrefix+">"),
		newest(Results, "what services did with objects", resultsPrefix+">"),
		announce, letters,
	}
}

// EnsureConsumer creates or updates the durable of one service and binds to it.
func EnsureConsumer(ctx context.Context, js jetstream.JetStream, service Service) (jetstream.Consumer, error) {
	c, err := js.CreateOrUpdateConsumer(ctx, Changes, consumer(service))
	if err != nil {
		return nil, fmt.Errorf("create or update durable %s: %w", service.Name, err)
	}
	return c, nil
}

func consumer(service Service) jetstream.ConsumerConfig {
	filters := []string{WakeSubject(service.Name)}
	for _, r := range service.Kinds {
		filters = append(filters, ChangesFilter("", r))
	}
	return jetstream.ConsumerConfig{
		Durable: service.Name, FilterSubjects: filters,
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: AckWait, MaxDeliver: -1, MaxAckPending: MaxAckPending,
		PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{Group}, PinnedTTL: pinnedTTL,
	}
}

// Incarnation names one life of a stream: deleted and created again, it is another.
func Incarnation(info *jetstream.StreamInfo) string {
	return info.Created.UTC().Format(time.RFC3339Nano)
}

// DecodeChange reads a message of [Changes]. Its error is terminal: the message will never be readable.
func DecodeChange(msg jetstream.Msg) (event.Change, error) {
	key, err := ParseChangeSubject(msg.Subject())
	if err != nil {
		return event.Change{}, fault.Terminal(err)
	}
	change, err := event.Unmarshal(key, msg.Data())
	return change, fault.Terminal(err)
}
