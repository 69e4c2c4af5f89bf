package infer

import (
	"iter"
	"slices"
)

// Namespace is all there is in one.
type Namespace struct {
	Name  string
	Rules []Rule
	// Bindings of whatever origin.
	Bindings []*Binding
}

// Outcome is what follows from a [Namespace].
type Outcome struct {
	*Rulebook
	// Wanted are the generated bindings that must be, by name.
	Wanted map[string]Wanted
}

// Judge is what the rules of a namespace say, with those paused that ask for too much.
func Judge(ns Namespace, p Policy) *Rulebook {
	load, sources := map[Role]int{}, 0
	for _, b := range ns.Bindings {
		if b.IsSource() {
			load[b.Role]++
			sources++
		}
	}
	return NewRulebook(ns.Name, ns.Rules, p).Limited(sources, func(r Role) int { return load[r] })
}

// Infer computes everything about a namespace. It is the definition of what the service
// does; that the service computes only what a change may have touched must make no difference.
func Infer(ns Namespace, p Policy) Outcome {
	o := Outcome{Rulebook: Judge(ns, p), Wanted: map[string]Wanted{}}
	for _, b := range ns.Bindings {
		for _, w := range o.Rulebook.Wanted(b) {
			o.Wanted[w.Name] = w
		}
	}
	return o
}

// Steps lists what is to be done about the whole namespace, source by source.
func (o Outcome) Steps(bindings []*Binding) []Step { return slices.Collect(o.Plans(bindings)) }

// Plans yields what is to be done about all bindings of a namespace, source by source. It
// holds the steps of one source at a time: of all there may be too many.
func (b *Rulebook) Plans(bindings []*Binding) iter.Seq[Step] {
	stocks, names := map[string]*Stock{}, []string{}
	byName := make(map[string]*Binding, len(bindings))
	stock := func(name string) *Stock {
		s, ok := stocks[name]
		if !ok {
			s = &Stock{Source: name, Holder: func(name string) *Binding { return byName[name] }}
			stocks[name] = s
			names = append(names, name)
		}
		return s
	}
	for _, is := range bindings {
		byName[is.Name] = is
		if is.Generated() {
			stock(is.Source).Generated = append(stock(is.Source).Generated, is)
		} else {
			stock(is.Name).Binding = is
		}
	}
	return func(yield func(Step) bool) {
		for _, name := range names {
			for _, step := range b.Plan(*stocks[name]) {
				if !yield(step) {
					return
				}
			}
		}
	}
}
