package topology

import (
	"errors"
	"fmt"
	"strings"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	changesPrefix     = "entail.changes."
	targetsPrefix     = "entail.objects."
	syncPrefix        = "entail.sync."
	targetsSuffix     = ".objects"
	heartbeatSuffix   = ".heartbeat"
	resultsPrefix     = "entail.results."
	announcePrefix    = "entail.announce."
	deadLettersPrefix = "entail.deadletters."
	wakePrefix        = "entail.wake."
)

// ChangeSubject carries the newest state of one object.
func ChangeSubject(k event.Key) string { return prefix(k.GroupResource) + k.Tokens() }

// prefix is what the subjects of a kind begin with.
func prefix(r event.GroupResource) string {
	if r.Target {
		return targetsPrefix
	}
	return changesPrefix
}

// TombstoneSubject carries the deletion of an object whose name another has taken since, or
// that was there before the cluster went back in time.
func TombstoneSubject(k event.Key, uid string) string {
	return ChangeSubject(k) + "." + event.Token(uid)
}

// ParseChangeSubject is the inverse of [ChangeSubject] and, when there is a uid, of [TombstoneSubject].
func ParseChangeSubject(subject string) (k event.Key, uid string, err error) {
	tail, ok := strings.CutPrefix(subject, changesPrefix)
	target := !ok
	if target {
		tail, ok = strings.CutPrefix(subject, targetsPrefix)
	}
	if !ok {
		return event.Key{}, "", fmt.Errorf("subject %.200q is not one of changes", subject)
	}
	if i := strings.LastIndexByte(tail, '.'); strings.Count(tail, ".") == keyTokens {
		uid, err = event.ParseToken(tail[i+1:])
		if err == nil && uid == "" {
			err = errNoUID
		}
		if err != nil {
			return event.Key{}, "", fmt.Errorf("subject %.200q: %w", subject, err)
		}
		tail = tail[:i]
	}
	k, err = event.ParseTokens(tail)
	k.Target = target
	return k, uid, err
}

// keyTokens is how many tokens name an object.
const keyTokens = 5

var errNoUID = errors.New("the last token names no UID")

// ChangesFilter matches the changes of one kind in one cluster, or in all when cluster is empty.
func ChangesFilter(cluster string, r event.GroupResource) string {
	if r == kinds.Targets() {
		return targetsPrefix + clusterToken(cluster) + ".>"
	}
	return prefix(r) + clusterToken(cluster) + "." + event.Token(r.Group) + "." + event.Token(r.Resource) + ".>"
}

// HeadsFilter matches them without the tombstones that have subjects of their own.
func HeadsFilter(cluster string, r event.GroupResource) string {
	return strings.TrimSuffix(ChangesFilter(cluster, r), ">") + "*.*"
}

// HeadsFilterIn matches those in one namespace.
func HeadsFilterIn(cluster string, r event.GroupResource, namespace string) string {
	return strings.TrimSuffix(ChangesFilter(cluster, r), ">") + event.Token(namespace) + ".*"
}

// SyncSubject carries the newest snapshot marker of one kind in one cluster.
func SyncSubject(cluster string, r event.GroupResource) string {
	subject := syncPrefix + clusterToken(cluster) + "."
	switch {
	case r == kinds.Targets():
		return subject + "*.*" + targetsSuffix
	case r.Target:
		return subject + event.Token(r.Group) + "." + event.Token(r.Resource) + targetsSuffix
	}
	return subject + event.Token(r.Group) + "." + event.Token(r.Resource)
}

// ParseTargetMarker is the inverse of [SyncSubject] for a kind of targets.
func ParseTargetMarker(subject string) (event.GroupResource, error) {
	tail, ok := strings.CutSuffix(strings.TrimPrefix(subject, syncPrefix), targetsSuffix)
	tokens := strings.Split(tail, ".")
	if !ok || len(tokens) != 3 {
		return event.GroupResource{}, fmt.Errorf("subject %.200q is not one of a marker of targets", subject)
	}
	group, err := event.ParseToken(tokens[1])
	resource, err2 := event.ParseToken(tokens[2])
	return event.GroupResource{Group: group, Resource: resource, Target: true}, errors.Join(err, err2)
}

// HeartbeatSubject carries the newest heartbeat of the watcher of one cluster, or of all when cluster
// is empty.
func HeartbeatSubject(cluster string) string {
	return syncPrefix + clusterToken(cluster) + heartbeatSuffix
}

// IsHeartbeat tells the subject of a heartbeat from that of a marker, which has one token more.
func IsHeartbeat(subject string) bool {
	return strings.Count(subject, ".") == strings.Count(HeartbeatSubject(""), ".")
}

// ResultSubject carries the newest word of one service on one object. Service "*" matches all.
func ResultSubject(service string, k event.Key) string {
	return resultsPrefix + service + "." + k.Tokens()
}

// ResultsFilter matches all that a service says of objects.
func ResultsFilter(service string) string { return resultsPrefix + service + ".>" }

// AnnounceSubject carries announcements about one OpenFGA store.
func AnnounceSubject(storeID string) string { return announcePrefix + event.Token(storeID) }

// DeadLetterSubject is where a service parks a message of the given subject. A subject
// that names no object keeps its tokens.
func DeadLetterSubject(service, subject string) string {
	return deadLettersPrefix + service + "." + strings.TrimPrefix(subject, changesPrefix)
}

// DeadLettersFilter matches a service's dead letters, or all when service is empty.
func DeadLettersFilter(service string) string {
	if service == "" {
		return deadLettersPrefix + ">"
	}
	return deadLettersPrefix + service + ".>"
}

// WakeSubject makes the active replica of a service look at everything it knows. It lies
// in ENTAIL_CHANGES, so that the pinned replica, and only that one, receives it.
func WakeSubject(service string) string { return wakePrefix + service }

// BarrierSubject is where the view of a service makes a mark in ENTAIL_CHANGES: once it has read
// that, it has read all that was there before. No durable receives it.
func BarrierSubject(service string) string { return wakePrefix + "view-" + service }

// WakeFilter matches what services tell themselves in ENTAIL_CHANGES: wakes, barriers and turns.
func WakeFilter() string { return wakePrefix + "*" }

// IsWake reports whether a subject is one of those.
func IsWake(subject string) bool { return strings.HasPrefix(subject, wakePrefix) }

// TurnSubject is where the active replica of a service says that it is, or that it has left.
func TurnSubject(service string) string { return wakePrefix + "turn-" + service }

// InboxPrefix is where answers to a service arrive, and nobody else listens.
func InboxPrefix(service string) string { return "_INBOX_" + service }

// clusterToken matches every cluster when cluster is empty.
func clusterToken(cluster string) string {
	if cluster == "" {
		return "*"
	}
	return event.Token(cluster)
}
