package infer

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

// Infer computes everything about a namespace. It is the definition of what the service
// does; that the service computes only what a change may have touched must make no difference.
func Infer(ns Namespace, p Policy) Outcome {
	o := Outcome{Rulebook: NewRulebook(ns.Name, ns.Rules, p), Wanted: map[string]Wanted{}}
	load, sources := map[Role]int{}, []*Binding{}
	for _, b := range ns.Bindings {
		if b.IsSource() {
			load[b.Role]++
			sources = append(sources, b)
		}
	}
	o.Rulebook = o.Limited(len(sources), func(r Role) int { return load[r] })
	for _, b := range sources {
		for _, w := range o.Rulebook.Wanted(b) {
			o.Wanted[w.Name] = w
		}
	}
	return o
}

// Steps lists what is to be done about the whole namespace, source by source.
func (o Outcome) Steps(bindings []*Binding) []Step {
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
	for _, b := range bindings {
		byName[b.Name] = b
		if b.Generated() {
			stock(b.Source).Generated = append(stock(b.Source).Generated, b)
		} else {
			stock(b.Name).Binding = b
		}
	}
	var steps []Step
	for _, name := range names {
		steps = append(steps, o.Plan(*stocks[name])...)
	}
	return steps
}
