package policytest

import (
	"fmt"
	"slices"
	"strings"
)

// writeFiles distributes the policy over documents and files, in random order and style.
func (g *policyGenerator) writeFiles() []string {
	lists := map[string][]string{}
	for i, t := range g.types {
		lists["resourceTypes"] = append(lists["resourceTypes"], g.typeText(i, t))
	}
	for _, name := range g.unionNames {
		lists["unions"] = append(lists["unions"], g.unionText(name))
	}
	for _, action := range g.actions {
		lists["actions"] = append(lists["actions"], g.shuffledMapping(g.randomCase("name")+": "+action))
	}
	for _, b := range g.bindings {
		lists["actionBindings"] = append(lists["actionBindings"], g.bindingText(b))
	}
	documents := make([]map[string][]string, 1+g.random.IntN(4))
	for _, key := range []string{"resourceTypes", "unions", "actions", "actionBindings"} {
		for _, item := range lists[key] {
			i := g.random.IntN(len(documents))
			if documents[i] == nil {
				documents[i] = map[string][]string{}
			}
			documents[i][key] = append(documents[i][key], item)
		}
	}
	files := []string{""}
	for i, d := range documents {
		if i > 0 && g.hasRandomChance(2) {
			files = append(files, "")
		}
		files[len(files)-1] += g.documentText(i, d)
	}
	return files
}

func (g *policyGenerator) documentText(i int, lists map[string][]string) string {
	var text strings.Builder
	text.WriteString("---\n")
	if g.hasRandomChance(2) {
		fmt.Fprintf(&text, "# Provided by service-%d\n", i)
	}
	for _, key := range []string{"actionBindings", "actions", "resourceTypes", "unions"} {
		items := lists[key]
		if len(items) == 0 {
			continue
		}
		g.random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		text.WriteString(g.randomCase(key) + ":\n")
		for _, item := range items {
			text.WriteString("- " + strings.ReplaceAll(item, "\n", "\n  ") + "\n")
		}
	}
	return text.String()
}

func (g *policyGenerator) typeText(i int, t string) string {
	parts := []string{g.randomCase("name") + ": " + t, g.randomCase("idPrefix") + ": " + idPrefix(i)}
	if relations := g.relations[t]; len(relations) > 0 {
		items := make([]string, len(relations))
		for i, r := range relations {
			items[i] = g.shuffledMapping(g.randomCase("relation")+": "+r.name, g.randomList("targetTypes", g.randomReferences(r.targets)))
		}
		parts = append(parts, g.randomList("relationships", items))
	}
	return g.shuffledMapping(parts...)
}

func (g *policyGenerator) unionText(name string) string {
	key := "resourceTypes"
	if g.hasRandomChance(3) {
		key = "resourceTypeNames"
	}
	return g.shuffledMapping(g.randomCase("name")+": "+name, g.randomList(key, g.randomReferences(g.unions[name])))
}

func (g *policyGenerator) randomReferences(names []string) []string {
	names = slices.Clone(names)
	if g.hasRandomChance(2) {
		return names
	}
	for i := range names {
		names[i] = g.randomCase("name") + ": " + names[i]
	}
	return names
}

func (g *policyGenerator) bindingText(b generatedBinding) string {
	var conditions []string
	if b.role {
		conditions = append(conditions, g.randomCase("roleBinding")+": {}")
	}
	for _, s := range b.steps {
		action := g.shuffledMapping(g.randomCase("relation")+": "+s.relation, g.randomCase("actionName")+": "+s.action)
		conditions = append(conditions, g.randomCase("relationshipAction")+":\n  "+strings.ReplaceAll(action, "\n", "\n  "))
	}
	return g.shuffledMapping(g.randomCase("actionName")+": "+b.action, g.randomCase("typeName")+": "+b.on, g.randomList("conditions", conditions))
}

// randomCase returns a key in random case.
func (g *policyGenerator) randomCase(key string) string {
	switch g.random.IntN(8) {
	case 0:
		return strings.ToLower(key)
	case 1:
		return strings.ToUpper(key)
	default:
		return key
	}
}

func (g *policyGenerator) shuffledMapping(parts ...string) string {
	g.random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, "\n")
}

func (g *policyGenerator) randomList(key string, items []string) string {
	g.random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	plain := !slices.ContainsFunc(items, func(item string) bool { return strings.ContainsAny(item, "\n{") })
	if plain && g.hasRandomChance(4) {
		return g.randomCase(key) + ": [" + strings.Join(items, ", ") + "]"
	}
	var text strings.Builder
	text.WriteString(g.randomCase(key) + ":")
	for _, item := range items {
		text.WriteString("\n  - " + strings.ReplaceAll(item, "\n", "\n    "))
	}
	return text.String()
}
