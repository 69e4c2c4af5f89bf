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

// subjectPrefix returns the start of the subjects of a kind.
func subjectPrefix(r event.GroupResource) string {
	if r.Target {
		return targetsPrefix
	}
	return changesPrefix
}

// TombstoneSubject returns the subject for the deletion of an object whose name another object has now, or that existed
// before the cluster went back in time.
func TombstoneSubject(k event.Key, uid string) string {
	return ChangeSubject(k) + "." + event.EncodeToken(uid)
}

// ParseChangeSubject parses the output of [ChangeSubject] and of [TombstoneSubject]. uid is empty for the former.
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
		uid, err = event.DecodeToken(tail[i+1:])
		if err == nil && uid == "" {
			err = errNoUID
		}
		if err != nil {
			return event.Key{}, "", fmt.Errorf("subject %.200q: %w", subject, err)
		}
		tail = tail[:i]
	}
	k, err = event.ParseSubjectTokens(tail)
	k.Target = target
	return k, uid, err
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

// ClusterFilters matches the changes of all kinds in one cluster.
func ClusterFilters(cluster string) []string {
	return []string{changesPrefix + event.EncodeToken(cluster) + ".>", targetsPrefix + event.EncodeToken(cluster) + ".>"}
}

// CurrentStatesFilter matches these changes without the tombstones on subjects of their own.
func CurrentStatesFilter(cluster string, r event.GroupResource) string {
	return strings.TrimSuffix(ChangesFilter(cluster, r), ">") + "*.*"
}

// TombstonesFilter matches the tombstones on subjects of their own.
func TombstonesFilter(cluster string, r event.GroupResource) string {
	return CurrentStatesFilter(cluster, r) + ".*"
}

// CurrentStatesFilterIn matches the same in one namespace.
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

// ParseTargetMarkerSubject parses the output of [MarkerSubject] for a kind of targets.
func ParseTargetMarkerSubject(subject string) (event.GroupResource, error) {
	tail, ok := strings.CutSuffix(strings.TrimPrefix(subject, syncPrefix), targetsSuffix)
	tokens := strings.Split(tail, ".")
	if !ok || len(tokens) != 3 {
		return event.GroupResource{}, fmt.Errorf("subject %.200q is not one of a marker of targets", subject)
	}
	group, err := event.DecodeToken(tokens[1])
	resource, err2 := event.DecodeToken(tokens[2])
	return event.GroupResource{Group: group, Resource: resource, Target: true}, errors.Join(err, err2)
}

// BarrierSubject returns the subject for the newest barrier of one cluster; it matches all clusters if cluster is empty.
// Only the watcher may publish on it. No durable consumer receives barriers.
func BarrierSubject(cluster string) string { return barrierPrefix + clusterTokenOrWildcard(cluster) }

// IsBarrierSubject reports whether a subject is that of a barrier.
func IsBarrierSubject(subject string) bool { return strings.HasPrefix(subject, barrierPrefix) }

// ResultSubject returns the subject for the newest result of one service for one object. Service "*" matches all
// services.
func ResultSubject(service string, k event.Key) string {
	return resultsPrefix + service + "." + k.SubjectTokens()
}

// ResultsFilter matches all results of a service.
func ResultsFilter(service string) string { return resultsPrefix + service + ".>" }

// DeadLetterSubject returns the subject for the dead letter of a message. A subject that names no object keeps its
// tokens.
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

// WakeSubject returns the subject that makes the active replica of a service reconcile everything. It belongs to
// ENTAIL_CHANGES, so that only the pinned replica receives it.
func WakeSubject(service string) string { return wakePrefix + service }

// EndMarkSubject returns the subject on which the view of a service marks the end of ENTAIL_CHANGES. A view that has read
// its mark has read everything before it. No durable consumer receives such marks.
func EndMarkSubject(service string) string { return wakePrefix + "end-" + service }

// ProbeSubject returns the subject on which a service publishes to find out whether NATS accepts messages.
func ProbeSubject(service string) string { return wakePrefix + "view-" + service }

// IsWakeSubject reports whether services publish on a subject of ENTAIL_CHANGES: wakes, claims, pulses and marks of its end.
func IsWakeSubject(subject string) bool { return strings.HasPrefix(subject, wakePrefix) }

// LeaseSubject returns the subject on which the active replica of a service claims its turn, or gives it up.
func LeaseSubject(service string) string { return wakePrefix + "turn-" + service }

// InboxPrefix returns the prefix of the inboxes of a service. No other account may subscribe to them.
func InboxPrefix(service string) string { return "_INBOX_" + service }

// clusterTokenOrWildcard returns a wildcard if cluster is empty.
func clusterTokenOrWildcard(cluster string) string {
	if cluster == "" {
		return "*"
	}
	return event.EncodeToken(cluster)
}
