package policytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// GeneratePolicy returns a small valid policy as the texts of files. Over many seeds, the policies cover the whole language:
// overlapping unions, many conditions, long names, declared roles, any style of writing.
func GeneratePolicy(seed uint64) []string {
	g := &policyGenerator{random: rand.New(rand.NewPCG(seed, seed)), bound: map[string]map[string]bool{}, targets: map[string][]string{}}
	g.declareNames()
	g.addRelations()
	g.addBindings()
	return g.writeFiles()
}

type policyGenerator struct {
	random         *rand.Rand
	types, actions []string
	unions         map[string][]string
	unionNames     []string
	relations      map[string][]generatedRelation
	bindings       []generatedBinding
	// bound holds the bound actions by type, targets the target types by "type relation".
	bound   map[string]map[string]bool
	targets map[string][]string
}

type generatedRelation struct {
	name    string
	targets []string
}

type generatedBinding struct {
	action, on string
	role       bool
	steps      []generatedStep
}

type generatedStep struct{ relation, action string }

// hasRandomChance returns true once in n calls on average.
func (g *policyGenerator) hasRandomChance(n int) bool { return g.random.IntN(n) == 0 }

// pickSome returns between one and n items of the list, in random order.
func (g *policyGenerator) pickSome(list []string, n int) []string {
	shuffled := slices.Clone(list)
	g.random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled[:1+g.random.IntN(min(n, len(shuffled)))]
}

func (g *policyGenerator) declareNames() {
	g.types = g.pickNames(1+g.random.IntN(6), []string{
		"tenant", "project", "organization", "server", "load_balancer", "volume", "ip4",
		"type", "model", "user",
	})
	if g.hasRandomChance(8) {
		g.types = append(g.types, "role")
	}
	g.actions = g.pickNames(1+g.random.IntN(5), []string{"get", "list", "create", "server_get", "server_delete", "import", "use", "extend", "module", "any"})
	if g.hasRandomChance(20) {
		awkward := []string{"with", "nil", "self", "and", "define", "condition", "go", "get_"}
		g.actions[0] = awkward[g.random.IntN(len(awkward))]
	}
	g.unions = map[string][]string{}
	g.unionNames = g.pickNames(g.random.IntN(3), []string{"owner_types", "holders", "all"})
	for _, name := range g.unionNames {
		g.unions[name] = g.pickSome(g.types, len(g.types))
	}
}

// pickNames returns n names, some of them long.
func (g *policyGenerator) pickNames(n int, from []string) []string {
	names := slices.Clone(from)
	g.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:n]
	for i := range names {
		if g.hasRandomChance(12) {
			names[i] += "_" + strings.Repeat("x", g.random.IntN(55-len(names[i])))
			names[i] += "x"
		}
	}
	return names
}

func (g *policyGenerator) addRelations() {
	g.relations = map[string][]generatedRelation{}
	for _, t := range g.types {
		for _, name := range g.pickNames(g.random.IntN(4), []string{"parent", "owner", "holder", "own_er", "backed_by"}) {
			g.addRelation(t, generatedRelation{name, g.pickSome(append(slices.Clone(g.types), g.unionNames...), 3)})
		}
		if t == "role" {
			g.addRelation(t, generatedRelation{"subject", []string{g.types[0]}})
		}
	}
}

func (g *policyGenerator) addRelation(t string, r generatedRelation) {
	g.relations[t] = append(g.relations[t], r)
	for _, target := range r.targets {
		g.targets[t+" "+r.name] = append(g.targets[t+" "+r.name], g.memberTypes(target)...)
	}
}

// memberTypes returns the types that a name stands for.
func (g *policyGenerator) memberTypes(name string) []string {
	if members, found := g.unions[name]; found {
		return members
	}
	return []string{name}
}

// addBindings draws the bindings first, then conditions that are valid for them.
func (g *policyGenerator) addBindings() {
	for _, action := range g.actions {
		for _, on := range g.pickSome(append(slices.Clone(g.types), g.unionNames...), 4) {
			if slices.ContainsFunc(g.memberTypes(on), func(t string) bool { return g.bound[t][action] }) {
				continue
			}
			for _, t := range g.memberTypes(on) {
				if g.bound[t] == nil {
					g.bound[t] = map[string]bool{}
				}
				g.bound[t][action] = true
			}
			g.bindings = append(g.bindings, generatedBinding{action: action, on: on})
		}
	}
	for i := range g.bindings {
		b := &g.bindings[i]
		b.steps = g.validSteps(b.on)
		b.role = len(b.steps) == 0 || !g.hasRandomChance(6)
	}
}

// validSteps returns conditions that are valid on every type that a name stands for.
func (g *policyGenerator) validSteps(on string) []generatedStep {
	var steps []generatedStep
	members := g.memberTypes(on)
	for _, r := range g.relations[members[0]] {
		for _, action := range g.actions {
			possible := !slices.ContainsFunc(members, func(t string) bool {
				targets := g.targets[t+" "+r.name]
				return len(targets) == 0 || slices.ContainsFunc(targets, func(target string) bool { return !g.bound[target][action] })
			})
			if possible && g.hasRandomChance(2) {
				steps = append(steps, generatedStep{r.name, action})
			}
		}
	}
	return steps
}

// idPrefix returns a different ID prefix for each type.
func idPrefix(i int) string { return fmt.Sprintf("pfx%03d", i) }
