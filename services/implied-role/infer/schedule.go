package infer

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// ScheduleActions orders actions so that no subject lacks a role that it has both before and after. A subject that must lose a
// role keeps it no longer than that requires:
//
// - first holds the actions that take a role from subjects to which no other action gives it;
// - then holds the actions that give roles. Small sources come first, so they do not wait for large ones;
// - last holds the actions that take a role from a subject to which an earlier action gave it by another binding.
//
// An action that gives a role, and also takes it from a subject to which another action gives it, is done in two steps.
func ScheduleActions(actions []Action) (first, then, last []Action) {
	gains := countGains(actions)
	for _, a := range actions {
		gained, lost := a.gainedSubjects(), a.lostSubjects()
		moved := slices.ContainsFunc(lost, func(subject rbacv1.Subject) bool { return gains[subjectRole{a.Child, subject}] > 0 })
		switch {
		case len(gained) == 0 && len(lost) > 0 && !moved:
			first = append(first, a)
		case len(gained) == 0 && moved:
			last = append(last, a)
		case moved:
			both := a
			both.Subjects = append(slices.Clone(a.Observed.Subjects), gained...)
			then, last = append(then, both), append(last, a)
		default:
			then = append(then, a)
		}
	}
	bulk := map[string]int{}
	for _, a := range then {
		bulk[a.Source]++
	}
	slices.SortStableFunc(then, func(a, b Action) int { return bulk[a.Source] - bulk[b.Source] })
	return first, then, last
}

// subjectRole is one role of one subject.
type subjectRole struct {
	role    Role
	subject rbacv1.Subject
}

// countGains counts, for each grant, the actions that give it.
func countGains(actions []Action) map[subjectRole]int {
	gains := map[subjectRole]int{}
	for _, a := range actions {
		for _, subject := range a.gainedSubjects() {
			gains[subjectRole{a.Child, subject}]++
		}
	}
	return gains
}

// AddsSubject reports whether the action adds a subject to the binding.
func (a Action) AddsSubject() bool { return len(a.gainedSubjects()) > 0 }

func (a Action) gainedSubjects() []rbacv1.Subject {
	return subtractSubjects(a.Subjects, a.observedSubjects())
}

func (a Action) lostSubjects() []rbacv1.Subject {
	return subtractSubjects(a.observedSubjects(), a.Subjects)
}

func (a Action) observedSubjects() []rbacv1.Subject {
	if a.Observed == nil {
		return nil
	}
	return a.Observed.Subjects
}

// subtractSubjects lists the subjects of all that are not in some.
func subtractSubjects(all, some []rbacv1.Subject) []rbacv1.Subject {
	if len(some) == 0 || slices.Equal(all, some) {
		if len(some) == 0 {
			return all
		}
		return nil
	}
	has := make(map[rbacv1.Subject]struct{}, len(some))
	for _, s := range some {
		has[s] = struct{}{}
	}
	var list []rbacv1.Subject
	for _, s := range all {
		if _, ok := has[s]; !ok {
			list = append(list, s)
		}
	}
	return list
}
