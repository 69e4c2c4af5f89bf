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
	resultsPrefix     = "entail.results."
	deadLettersPrefix = "entail.deadletters."
	wakePrefix        = "entail.wake."
	barrierPrefix     = "entail.barrier."
)

// ChangeSubject returns the subject for the newest state of one object.
func ChangeSubject(k event.Key) string { return subjectPrefix(k.GroupResource) + k.SubjectTokens() }

// subjectPrefix returns the first tokens of a kind's subjects.
func subjectPrefix(r event.GroupResource) string {
	if r.Target {
		return targetsPrefix
	}
	return changesPrefix
}

// TombstoneSubject returns the subject for a tombstone whose name is in use again: another object has it, or the
// cluster's history was rewound.
func TombstoneSubject(k event.Key, uid string) string {
	return ChangeSubject(k) + "." + event.EncodeToken(uid)
}

// ParseChangeOrTombstoneSubject parses the output of [ChangeSubject] and of [TombstoneSubject]. tombstoneUID is empty
// for a [ChangeSubject].
func ParseChangeOrTombstoneSubject(subject string) (k event.Key, tombstoneUID string, err error) {
	tail, ok := strings.CutPrefix(subject, changesPrefix)
	target := !ok
	if target {
		tail, ok = strings.CutPrefix(subject, targetsPrefix)
	}
	if !ok {
		return event.Key{}, "", fmt.Errorf("subject %.200q is not a subject of changes", subject)
	}
	if i := strings.LastIndexByte(tail, '.'); strings.Count(tail, ".") == keyTokens {
		tombstoneUID, err = event.DecodeToken(tail[i+1:])
		if err == nil && tombstoneUID == "" {
			err = errNoUID
		}
		if err != nil {
			return event.Key{}, "", fmt.Errorf("subject %.200q: %w", subject, err)
		}
		tail = tail[:i]
	}
	k, err = event.ParseSubjectTokens(tail)
	k.Target = target
	return k, tombstoneUID, err
}

// keyTokens is the number of tokens that name an object.
const keyTokens = 5

var errNoUID = errors.New("the last token names no UID")

// ChangesFilter matches the changes of one kind in one cluster, or in all clusters if cluster is empty.
func ChangesFilter(cluster string, r event.GroupResource) string {
	if r == kinds.AllTargets() {
		return targetsPrefix + clusterTokenOrWildcard(cluster) + ".>"
	}
	return subjectPrefix(r) + clusterTokenOrWildcard(cluster) + "." + event.EncodeToken(r.Group) + "." + event.EncodeToken(r.Resource) + ".>"
}

// ClusterFilters returns filters that match the changes of all kinds in one cluster.
func ClusterFilters(cluster string) []string {
	return []string{changesPrefix + event.EncodeToken(cluster) + ".>", targetsPrefix + event.EncodeToken(cluster) + ".>"}
}

// CurrentStatesFilter matches the same as [ChangesFilter], but no [TombstoneSubject].
func CurrentStatesFilter(cluster string, r event.GroupResource) string {
	return strings.TrimSuffix(ChangesFilter(cluster, r), ">") + "*.*"
}

// TombstonesFilter matches every [TombstoneSubject] of one kind.
func TombstonesFilter(cluster string, r event.GroupResource) string {
	return CurrentStatesFilter(cluster, r) + ".*"
}

// CurrentStatesFilterIn matches the same as [CurrentStatesFilter] in one namespace.
func CurrentStatesFilterIn(cluster string, r event.GroupResource, namespace string) string {
	return strings.TrimSuffix(ChangesFilter(cluster, r), ">") + event.EncodeToken(namespace) + ".*"
}

// MarkerSubject returns the subject for the newest snapshot marker of one kind in one cluster.
func MarkerSubject(cluster string, r event.GroupResource) string {
	subject := syncPrefix + clusterTokenOrWildcard(cluster) + "."
	switch {
	case r == kinds.AllTargets():
		return subject + "*.*" + targetsSuffix
	case r.Target:
		return subject + event.EncodeToken(r.Group) + "." + event.EncodeToken(r.Resource) + targetsSuffix
	}
	return subject + event.EncodeToken(r.Group) + "." + event.EncodeToken(r.Resource)
}

// ParseTargetMarkerSubject parses the output of [MarkerSubject] for a target kind.
func ParseTargetMarkerSubject(subject string) (event.GroupResource, error) {
	tail, ok := strings.CutSuffix(strings.TrimPrefix(subject, syncPrefix), targetsSuffix)
	tokens := strings.Split(tail, ".")
	if !ok || len(tokens) != 3 {
		return event.GroupResource{}, fmt.Errorf("subject %.200q is not the subject of a marker of targets", subject)
	}
	group, err := event.DecodeToken(tokens[1])
	resource, err2 := event.DecodeToken(tokens[2])
	return event.GroupResource{Group: group, Resource: resource, Target: true}, errors.Join(err, err2)
}

// BarrierSubject returns the subject for the newest barrier of one cluster. It matches all clusters if cluster is
// empty. Only the watcher may publish on this subject. No durable consumer receives barriers.
func BarrierSubject(cluster string) string { return barrierPrefix + clusterTokenOrWildcard(cluster) }

// IsBarrierSubject reports whether a subject is a [BarrierSubject].
func IsBarrierSubject(subject string) bool { return strings.HasPrefix(subject, barrierPrefix) }

// ResultSubject returns the subject for the newest result of one service for one object. The service "*" matches all
// services.
func ResultSubject(service string, k event.Key) string {
	return resultsPrefix + service + "." + k.SubjectTokens()
}

// ResultsFilter matches all results of a service.
func ResultsFilter(service string) string { return resultsPrefix + service + ".>" }

// DeadLetterSubject returns the subject for the dead letter of a message. It also accepts a subject that is not a
// change.
func DeadLetterSubject(service, subject string) string {
	return deadLettersPrefix + service + "." + strings.TrimPrefix(subject, changesPrefix)
}

// DeadLettersFilter matches the dead letters of a service, or of all services if service is empty.
func DeadLettersFilter(service string) string {
	if service == "" {
		return deadLettersPrefix + ">"
	}
	return deadLettersPrefix + service + ".>"
}

// ResyncSubject returns the subject that makes the leader of a service reconcile everything. It belongs to
// ENTAIL_CHANGES, so that only the pinned replica receives it.
func ResyncSubject(service string) string { return wakePrefix + service }

// EndMarkSubject returns the subject for the end marks of a service's informer. An informer writes an end mark to
// ENTAIL_CHANGES; once it receives the mark, it has read everything before. No durable consumer receives end marks.
func EndMarkSubject(service string) string { return wakePrefix + "end-" + service }

// ProbeSubject returns the subject on which a service publishes to check that NATS accepts messages.
func ProbeSubject(service string) string { return wakePrefix + "view-" + service }

// IsServiceSubject reports whether services publish on a subject of ENTAIL_CHANGES: wakes, leases, probes and end
// marks.
func IsServiceSubject(subject string) bool { return strings.HasPrefix(subject, wakePrefix) }

// LeaseSubject returns the subject for the lease of a service's leader.
func LeaseSubject(service string) string { return wakePrefix + "turn-" + service }

// InboxPrefix returns the prefix of a service's inboxes. No other NATS user may subscribe to them.
func InboxPrefix(service string) string { return "_INBOX_" + service }

// clusterTokenOrWildcard returns the token of a cluster, or a wildcard if cluster is empty.
func clusterTokenOrWildcard(cluster string) string {
	if cluster == "" {
		return "*"
	}
	return event.EncodeToken(cluster)
}
