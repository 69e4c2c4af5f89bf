package policytest

import (
	"fmt"
	"slices"
	"strings"
)

// write distributes the policy over documents and files, in random order and style.
func (g *generator) write() []string {
	lists := map[string][]string{}
	for i, t := range g.types {
		lists["resourceTypes"] = append(lists["resourceTypes"], g.typeText(i, t))
	}
	for _, name := range g.unionNames {
		lists["unions"] = append(lists["unions"], g.unionText(name))
	}
	for _, action := range g.actions {
		lists["actions"] = append(lists["actions"], g.mapping(g.key("name")+": "+action))
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
		if i > 0 && g.one(2) {
			files = append(files, "")
		}
		files[len(files)-1] += g.documentText(i, d)
	}
	return files
}

func (g *generator) documentText(i int, lists map[string][]string) string {
	var text strings.Builder
	text.WriteString("---\n")
	if g.one(2) {
		fmt.Fprintf(&text, "# Provided by service-%d\n", i)
	}
	for _, key := range []string{"actionBindings", "actions", "resourceTypes", "unions"} {
		items := lists[key]
		if len(items) == 0 {
			continue
		}
		g.random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		text.WriteString(g.key(key) + ":\n")
		for _, item := range items {
			text.WriteString("- " + strings.ReplaceAll(item, "\n", "\n  ") + "\n")
		}
	}
	return text.String()
}

func (g *generator) typeText(i int, t string) string {
	parts := []string{g.key("name") + ": " + t, g.key("idPrefix") + ": " + prefix(i)}
	if relations := g.relations[t]; len(relations) > 0 {
		items := make([]string, len(relations))
		for i, r := range relations {
			items[i] = g.mapping(g.key("relation")+": "+r.name, g.list("targetTypes", g.references(r.targets)))
		}
		parts = append(parts, g.list("relationships", items))
	}
	return g.mapping(parts...)
}

func (g *generator) unionText(name string) string {
	key := "resourceTypes"
	if g.one(3) {
		key = "resourceTypeNames"
	}
	return g.mapping(g.key("name")+": "+name, g.list(key, g.references(g.unions[name])))
}

func (g *generator) references(names []string) []string {
	names = slices.Clone(names)
	if g.one(2) {
		return names
	}
	for i := range names {
		names[i] = g.key("name") + ": " + names[i]
	}
	return names
}

func (g *generator) bindingText(b binding) string {
	var conditions []string
	if b.role {
		conditions = append(conditions, g.key("roleBinding")+": {}")
	}
	for _, s := range b.steps {
		action := g.mapping(g.key("relation")+": "+s.relation, g.key("actionName")+": "+s.action)
		conditions = append(conditions, g.key("relationshipAction")+":\n  "+strings.ReplaceAll(action, "\n", "\n  "))
	}
	return g.mapping(g.key("actionName")+": "+b.action, g.key("typeName")+": "+b.on, g.list("conditions", conditions))
}

// key returns a key in random case.
func (g *generator) key(key string) string {
	switch g.random.IntN(8) {
	case 0:
		return strings.ToLower(key)
	case 1:
		return strings.ToUpper(key)
	default:
		return key
	}
}

func (g *generator) mapping(parts ...string) string {
	g.random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, "\n")
}

func (g *generator) list(key string, items []string) string {
	g.random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	plain := !slices.ContainsFunc(items, func(item string) bool { return strings.ContainsAny(item, "\n{") })
	if plain && g.one(4) {
		return g.key(key) + ": [" + strings.Join(items, ", ") + "]"
	}
	var text strings.Builder
	text.WriteString(g.key(key) + ":")
	for _, item := range items {
		text.WriteString("\n  - " + strings.ReplaceAll(item, "\n", "\n    "))
	}
	return text.String()
}
