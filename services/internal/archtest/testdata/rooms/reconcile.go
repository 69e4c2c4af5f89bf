// Package rooms has rooms, of which some use higher ones.
package rooms

type key string

type pass struct{ key key }

func reconcile(p pass) { apply(p, state{}) }

func wire() *state {
	s := &state{made: func() {}}
	s.onChange = func() { reconcile(pass{}) }
	return s
}
