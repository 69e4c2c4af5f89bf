package infer

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Schedule orders actions such that nobody lacks for a moment what they have before and
// after, and that nobody keeps for longer than that takes what they must lose:
//
//   - first what takes a role from subjects to whom no other action gives it;
//   - then whatever gives, sorted so that small sources do not wait for large ones;
//   - last what takes a role from a subject to whom an earlier action gave it by another binding.
//
// An action that gives a role to some and takes it from others, to whom another gives it, is
// done in two.
func Schedule(actions []Action) (first, then, last []Action) {
	gains := gainsOf(actions)
	for _, a := range actions {
		gained, lost := a.gained(), a.lost()
		moved := slices.ContainsFunc(lost, func(subject rbacv1.Subject) bool { return gains[grant{a.Child, subject}] > 0 })
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

// grant is a role of a subject.
type grant struct {
	role    Role
	subject rbacv1.Subject
}

// gainsOf counts the actions that give a role to a subject.
func gainsOf(actions []Action) map[grant]int {
	gains := map[grant]int{}
	for _, a := range actions {
		for _, subject := range a.gained() {
			gains[grant{a.Child, subject}]++
		}
	}
	return gains
}

// Gives reports whether somebody has a role afterwards that they did not have by this binding.
func (a Action) Gives() bool { return len(a.gained()) > 0 }

func (a Action) gained() []rbacv1.Subject { return missing(a.Subjects, a.had()) }

func (a Action) lost() []rbacv1.Subject { return missing(a.had(), a.Subjects) }

func (a Action) had() []rbacv1.Subject {
	if a.Observed == nil {
		return nil
	}
	return a.Observed.Subjects
}

// missing lists those of all that some lacks.
func missing(all, some []rbacv1.Subject) []rbacv1.Subject {
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
