package infer

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Schedule orders steps such that nobody lacks for a moment what they have before and
// after, and that nobody keeps for longer than that takes what they must lose:
//
//   - first what takes a role from subjects to whom no other step gives it;
//   - then whatever gives, sorted so that small sources do not wait for large ones;
//   - last what takes a role from a subject to whom an earlier step gave it by another binding.
//
// A step that gives a role to some and takes it from others, to whom another gives it, is
// done in two. Steps that do nothing to the cluster are left out.
func Schedule(steps []Step) (first, then, last []Step) {
	gains := gainsOf(steps)
	for _, s := range steps {
		if !s.Changes() {
			continue
		}
		gained, lost := s.gained(), s.lost()
		moved := slices.ContainsFunc(lost, func(subject rbacv1.Subject) bool { return gains[grant{s.Child, subject}] > 0 })
		switch {
		case len(gained) == 0 && len(lost) > 0 && !moved:
			first = append(first, s)
		case len(gained) == 0 && moved:
			last = append(last, s)
		case moved:
			both := s
			both.Subjects = append(slices.Clone(s.Is.Subjects), gained...)
			then, last = append(then, both), append(last, s)
		default:
			then = append(then, s)
		}
	}
	bulk := map[string]int{}
	for _, s := range then {
		bulk[s.Source]++
	}
	slices.SortStableFunc(then, func(a, b Step) int { return bulk[a.Source] - bulk[b.Source] })
	return first, then, last
}

// grant is a role of a subject.
type grant struct {
	role    Role
	subject rbacv1.Subject
}

// gainsOf counts the steps that give a role to a subject.
func gainsOf(steps []Step) map[grant]int {
	gains := map[grant]int{}
	for _, s := range steps {
		if s.Changes() {
			for _, subject := range s.gained() {
				gains[grant{s.Child, subject}]++
			}
		}
	}
	return gains
}

func (s Step) gained() []rbacv1.Subject { return missing(s.Subjects, s.had()) }

func (s Step) lost() []rbacv1.Subject { return missing(s.had(), s.Subjects) }

func (s Step) had() []rbacv1.Subject {
	if s.Is == nil {
		return nil
	}
	return s.Is.Subjects
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
