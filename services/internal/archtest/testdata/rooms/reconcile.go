// Package rooms has files of different layers, and some use a higher layer.
package rooms

type key string

type pass struct{ key key }

func reconcile(p pass) { apply(p, state{}) }

func wire() *state {
	s := &state{made: func() {}}
	s.onChange = func() { reconcile(pass{}) }
	return s
}
