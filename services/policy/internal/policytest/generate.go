package policytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Generate returns a small valid policy as the texts of files. Over many seeds, the policies cover the whole language:
// overlapping unions, many conditions, long names, declared roles, any style of writing.
func Generate(seed uint64) []string {
	g := &generator{random: rand.New(rand.NewPCG(seed, seed)), bound: map[string]map[string]bool{}, targets: map[string][]string{}}
	g.declare()
	g.relate()
	g.bind()
	return g.write()
}

type generator struct {
	random         *rand.Rand
	types, actions []string
	unions         map[string][]string
	unionNames     []string
	relations      map[string][]relation
	bindings       []binding
	// bound holds the bound actions by type, targets the target types by "type relation".
	bound   map[string]map[string]bool
	targets map[string][]string
}

type relation struct {
	name    string
	targets []string
}

type binding struct {
	action, on string
	role       bool
	steps      []step
}

type step struct{ relation, action string }

// one returns true once in n calls on average.
func (g *generator) one(n int) bool { return g.random.IntN(n) == 0 }

// pick returns between one and n items of the list, in random order.
func (g *generator) pick(list []string, n int) []string {
	shuffled := slices.Clone(list)
	g.random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled[:1+g.random.IntN(min(n, len(shuffled)))]
}

func (g *generator) declare() {
	g.types = g.names(1+g.random.IntN(6), []string{"tenant", "project", "organization", "server", "load_balancer", "volume", "ip4", "type", "model", "user"})
	if g.one(8) {
		g.types = append(g.types, "role")
	}
	g.actions = g.names(1+g.random.IntN(5), []string{"get", "list", "create", "server_get", "server_delete", "import", "use", "extend", "module", "any"})
	if g.one(20) {
		awkward := []string{"with", "nil", "self", "and", "define", "condition", "go", "get_"}
		g.actions[0] = awkward[g.random.IntN(len(awkward))]
	}
	g.unions = map[string][]string{}
	g.unionNames = g.names(g.random.IntN(3), []string{"owner_types", "holders", "all"})
	for _, name := range g.unionNames {
		g.unions[name] = g.pick(g.types, len(g.types))
	}
}

// names returns n names, some of them long.
func (g *generator) names(n int, from []string) []string {
	names := slices.Clone(from)
	g.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:n]
	for i := range names {
		if g.one(12) {
			names[i] += "_" + strings.Repeat("x", g.random.IntN(55-len(names[i])))
			names[i] += "x"
		}
	}
	return names
}

func (g *generator) relate() {
	g.relations = map[string][]relation{}
	for _, t := range g.types {
		for _, name := range g.names(g.random.IntN(4), []string{"parent", "owner", "holder", "own_er", "backed_by"}) {
			g.addRelation(t, relation{name, g.pick(append(slices.Clone(g.types), g.unionNames...), 3)})
		}
		if t == "role" {
			g.addRelation(t, relation{"subject", []string{g.types[0]}})
		}
	}
}

func (g *generator) addRelation(t string, r relation) {
	g.relations[t] = append(g.relations[t], r)
	for _, target := range r.targets {
		g.targets[t+" "+r.name] = append(g.targets[t+" "+r.name], g.members(target)...)
	}
}

// members returns the types that a name stands for.
func (g *generator) members(name string) []string {
	if members, found := g.unions[name]; found {
		return members
	}
	return []string{name}
}

// bind draws the bindings first, then conditions that are valid for them.
func (g *generator) bind() {
	for _, action := range g.actions {
		for _, on := range g.pick(append(slices.Clone(g.types), g.unionNames...), 4) {
			if slices.ContainsFunc(g.members(on), func(t string) bool { return g.bound[t][action] }) {
				continue
			}
			for _, t := range g.members(on) {
				if g.bound[t] == nil {
					g.bound[t] = map[string]bool{}
				}
				g.bound[t][action] = true
			}
			g.bindings = append(g.bindings, binding{action: action, on: on})
		}
	}
	for i := range g.bindings {
		b := &g.bindings[i]
		b.steps = g.steps(b.on)
		b.role = len(b.steps) == 0 || !g.one(6)
	}
}

// steps returns conditions that are valid on every type that a name stands for.
func (g *generator) steps(on string) []step {
	var steps []step
	members := g.members(on)
	for _, r := range g.relations[members[0]] {
		for _, action := range g.actions {
			possible := !slices.ContainsFunc(members, func(t string) bool {
				targets := g.targets[t+" "+r.name]
				return len(targets) == 0 || slices.ContainsFunc(targets, func(target string) bool { return !g.bound[target][action] })
			})
			if possible && g.one(2) {
				steps = append(steps, step{r.name, action})
			}
		}
	}
	return steps
}

// prefix returns a different ID prefix for each type.
func prefix(i int) string { return fmt.Sprintf("pfx%03d", i) }
