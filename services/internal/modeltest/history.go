package modeltest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// worldsPerHistory is the number of worlds in a history. A world is the set of all declarations at one moment.
const worldsPerHistory = 12

// coreBase lists the definitions that every generated core module has. A generated core module may have more.
//
//nolint:gochecknoglobals // A constant table.
var coreBase = map[string]string{
	"user": "", "group": "", "group#member": "[user]", "core_platform-mesh_io_account": "",
	"core_platform-mesh_io_account#member": "[user]", "core_platform-mesh_io_account#owner": "[user]",
	"core_namespace": "", "core_namespace#member": "[user]", "core_namespace#owner": "[user]",
}

// coreParts, moduleParts and documentParts list the parts from which texts are generated, with the possible values of
// each part.
//
// There are only a few types and names, so that texts conflict and depend on each other. The type "nothing" is never
// defined.
//
//nolint:gochecknoglobals // Constant tables.
var (
	coreParts = map[string][]string{
		"doc#viewer": {"[user]", "[user:*]", "[nothing]"}, "core_namespace#create_core_secrets": {"member"},
		"core_namespace#watcher": {"[user]", "member"}, "box#parent": {"[box]"},
	}
	moduleParts = map[string][]string{
		"doc#viewer": {"[user]", "[user:*]", "[user] or editor", "[user with night]", "[nothing]"},
		"doc#editor": {"[user]", "[group#member]", "[box#viewer]"}, "box#parent": {"[doc]", "[box]"},
		"box#viewer": {"[user]", "[user] or viewer from parent", "[shelf]"}, "shelf#parent": {"[box]", "[doc]"},
		"core_secret#viewer": {"[user]"}, "core_namespace#create_core_secrets": {"member"},
		"core_namespace#watcher": {"[user]", "[doc#viewer]", "[core_secret#viewer]"}, "role#subject": {"[user]", "[user:*]"},
		"condition night": {"x > 1", "x > 2"},
	}
	documentParts = map[string][]string{
		"type box": {""}, "type doc": {""}, "type shelf": {""}, "type core_secret": {""}, "type shelf parent": {"box", "box doc", "places"},
		"union places": {"box", "box doc", "nothing box"}, "action look": {""}, "action use": {""},
		"bind box look": {"role"}, "bind doc look": {"role"}, "bind places look": {"role"}, "bind shelf use": {"role"},
		"bind shelf look": {"role", "role parent", "parent"},
	}
	discovered = []DiscoveredModule{discoveredResource("configmap"), discoveredResource("secret")}
)

// discoveredResource returns the discovered module of an API resource.
func discoveredResource(name string) DiscoveredModule {
	text := "module NAMEs\nextend type core_namespace\n  relations\n    define create_core_NAMEs: owner\n" +
		"type core_NAME\n  relations\n    define parent: [core_namespace]\n    define viewer: [user] or member from parent\n"
	return DiscoveredModule{Name: name + "s", Text: strings.ReplaceAll(text, "NAME", name)}
}

// textDraft is a generated text. kinds is the table from which its parts were chosen.
type textDraft struct {
	name    string
	module  string // the name in the module's first line
	created int
	kinds   map[string][]string
	parts   map[string]string
	broken  bool // the text has a syntax error
}

// historyGenerator generates a history.
type historyGenerator struct {
	random *rand.Rand

	rolesType bool
	created   int
	core      *textDraft
	drafts    []*textDraft // modules and documents
	served    []DiscoveredModule
	discovery int // how many of the resources in served are discovered
}

// randomHistory returns random worlds. served lists the resources that can be discovered in them.
func randomHistory(random *rand.Rand, served []DiscoveredModule) (worlds []Declarations) {
	a := &historyGenerator{
		random: random, rolesType: random.IntN(2) == 0, core: &textDraft{kinds: coreParts, parts: map[string]string{}},
		served: served, discovery: random.IntN(len(served) + 1),
	}
	if a.random.IntN(4) == 0 {
		a.connectDocuments()
	}
	for len(worlds) < worldsPerHistory {
		for range 1 + a.random.IntN(3) {
			a.changeRandomObject()
		}
		worlds = append(worlds, a.currentWorld())
	}
	return worlds
}

// rareHistories returns histories in which the type shelf inherits an action from its parent types. At first, a
// document binds the action to fewer types; the model accepts this. Then a document adds a parent type without the
// action; the model must refuse this.
func rareHistories() (histories [][]Declarations) {
	for _, of := range []struct{ bound, parents, key, edit string }{
		{"box doc", "box doc", "union places", "box"}, {"box", "box", "type shelf parent", "box doc"},
	} {
		a := &historyGenerator{rolesType: true, core: &textDraft{kinds: coreParts}}
		var worlds []Declarations
		for i, parts := range []map[string]string{
			{"type box": "", "type doc": "", "union places": of.bound, "action look": "", "bind places look": "role"},
			{"type shelf": "", "type shelf parent": of.parents},
			{"bind shelf look": "role parent"},
		} {
			a.drafts = append(a.drafts, &textDraft{name: fmt.Sprint("d", i), created: i + 1, kinds: documentParts, parts: parts})
		}
		worlds = append(worlds, a.currentWorld())
		for _, d := range a.drafts {
			if _, has := d.parts[of.key]; has {
				d.parts[of.key] = of.edit
			}
		}
		histories = append(histories, append(worlds, a.currentWorld()))
	}
	return histories
}

// connectDocuments adds documents that depend on each other: the type shelf inherits an action from its parent types.
func (a *historyGenerator) connectDocuments() {
	bound := []string{"bind box look", "bind places look"}[a.random.IntN(2)]
	for i, parts := range []map[string]string{
		{"type box": "", "type doc": "", "union places": "box doc", "action look": "", bound: "role"},
		{"type shelf": "", "type shelf parent": "box"},
		{"bind shelf look": "role parent"},
	} {
		a.created++
		a.drafts = append(a.drafts, &textDraft{name: fmt.Sprint("d", i), created: a.created, kinds: documentParts, parts: parts})
	}
}

// createConflictingObject creates an object that defines the same type as a discovered resource. Half of the modules
// define nothing else, so that they are valid.
func (a *historyGenerator) createConflictingObject() {
	a.createRandomObject()
	d := a.drafts[len(a.drafts)-1]
	switch {
	case d.name[0] == 'd':
		d.parts["type core_secret"] = ""
	case a.random.IntN(2) == 0:
		d.parts = map[string]string{"core_secret": "", "core_secret#viewer": "[user]"}
	default:
		d.parts["core_secret"] = ""
	}
}

// changeRandomObject makes one change to one object.
func (a *historyGenerator) changeRandomObject() {
	switch n := a.random.IntN(20); {
	case n == 0:
		was := a.discovery
		if a.discovery = a.random.IntN(len(a.served) + 1); a.discovery > was || a.random.IntN(2) == 0 {
			a.createConflictingObject()
		}
	case n <= 2:
		a.editRandomText(a.core)
	case len(a.drafts) < 3 || (n <= 6 && len(a.drafts) < 7):
		a.createRandomObject()
	case n <= 9:
		i := a.random.IntN(len(a.drafts))
		a.drafts = slices.Delete(a.drafts, i, i+1)
	default:
		a.editRandomText(a.drafts[a.random.IntN(len(a.drafts))])
	}
}

// createRandomObject adds a module or a document. Its name may have been used before. Some modules get the text of
// another module.
func (a *historyGenerator) createRandomObject() {
	a.created++
	d := &textDraft{name: "m", created: a.created, kinds: moduleParts, parts: map[string]string{}}
	if a.random.IntN(2) == 0 {
		d.name, d.kinds = "d", documentParts
	}
	for i := 0; ; i++ {
		name := fmt.Sprint(d.name, i)
		if !slices.ContainsFunc(a.drafts, func(o *textDraft) bool { return o.name == name }) {
			d.name, d.module = name, name
			break
		}
	}
	for range 2 + a.random.IntN(3) {
		a.addRandomPart(d)
	}
	if twin := a.firstModuleDraft(); twin != nil && d.name[0] == 'm' && a.random.IntN(6) == 0 {
		d.parts, d.module, d.broken = maps.Clone(twin.parts), twin.module, twin.broken
	}
	a.drafts = append(a.drafts, d)
}

// firstModuleDraft returns the first module, or nil.
func (a *historyGenerator) firstModuleDraft() *textDraft {
	for _, d := range a.drafts {
		if d.name[0] == 'm' {
			return d
		}
	}
	return nil
}

// editRandomText adds a part to a text, removes a part, adds a syntax error, or removes the syntax error.
func (a *historyGenerator) editRandomText(d *textDraft) {
	if d.name != "" {
		d.module = d.name
	}
	keys := slices.Sorted(maps.Keys(d.parts))
	switch n := a.random.IntN(10); {
	case d.broken || n == 0:
		d.broken = !d.broken && (d.name == "" || d.name[0] == 'm')
	case n <= 4 && (len(keys) > 2 || d.name == "" && len(keys) > 0):
		gone := keys[a.random.IntN(len(keys))]
		maps.DeleteFunc(d.parts, func(k, _ string) bool {
			return k == gone || strings.HasPrefix(k, gone+"#") || strings.HasPrefix(k, gone+" ") || k == "role" && gone == "role#subject"
		})
	default:
		a.addRandomPart(d)
	}
	if len(d.parts) == 0 && d.name != "" {
		a.addRandomPart(d)
	}
}

// addRandomPart adds or changes a part. In most cases it also adds the type of the part.
func (a *historyGenerator) addRandomPart(d *textDraft) {
	keys := slices.Sorted(maps.Keys(d.kinds))
	key := keys[a.random.IntN(len(keys))]
	if strings.HasPrefix(key, "role#") && a.rolesType {
		return
	}
	d.parts[key] = d.kinds[key][a.random.IntN(len(d.kinds[key]))]
	typ, _, relation := strings.Cut(key, "#")
	if relation && coreBase[typ+"#member"] == "" && (a.random.IntN(4) > 0 || typ == "role" || d.name == "") {
		d.parts[typ] = ""
	}
	if key == "type shelf parent" {
		d.parts["type shelf"] = ""
	}
}

// currentWorld returns the present declarations.
func (a *historyGenerator) currentWorld() Declarations {
	core := textDraft{parts: maps.Clone(coreBase)}
	maps.Copy(core.parts, a.core.parts)
	if a.rolesType {
		maps.Copy(core.parts, map[string]string{"role": "", "role#assignee": "[user]"})
	}
	w := Declarations{RolesType: a.rolesType, Discovered: a.served[:a.discovery], Core: "module core\n" + core.moduleText()}
	if a.core.broken {
		w.Core = strings.Replace(w.Core, "type core_platform", "typ core_platform", 1)
	}
	for _, d := range a.drafts {
		switch text := d.moduleText(); {
		case d.name[0] == 'd':
			w.Documents = append(w.Documents, Document{Name: d.name, Created: d.created, Text: d.documentText()})
		case d.broken:
			w.Modules = append(w.Modules, Module{Name: d.name, Created: d.created, Text: "module " + d.module + "\n" + text + "typ\n"})
		default:
			w.Modules = append(w.Modules, Module{Name: d.name, Created: d.created, Text: "module " + d.module + "\n" + text})
		}
	}
	return w
}

// moduleText returns the text of a module without its first line.
func (d *textDraft) moduleText() string {
	var types, conditions strings.Builder
	block := ""
	for _, k := range slices.Sorted(maps.Keys(d.parts)) {
		typ, relation, isRelation := strings.Cut(k, "#")
		_, own := d.parts[typ]
		name, isCondition := strings.CutPrefix(k, "condition ")
		switch {
		case isCondition:
			fmt.Fprintf(&conditions, "condition %s(x: int) {\n  %s\n}\n", name, d.parts[k])
			continue
		case !isRelation:
			types.WriteString("type " + typ + "\n")
			continue
		case block != typ && !own:
			types.WriteString("extend type " + typ + "\n")
		}
		if block != typ {
			types.WriteString("  relations\n")
		}
		block = typ
		types.WriteString("    define " + relation + ": " + d.parts[k] + "\n")
	}
	return types.String() + conditions.String()
}

// documentText returns the YAML text of a PolicyDocument.
func (d *textDraft) documentText() string {
	spec := map[string][]any{}
	names := func(list string) (all []any) {
		for name := range strings.FieldsSeq(list) {
			all = append(all, map[string]any{"name": name})
		}
		return all
	}
	for _, k := range slices.Sorted(maps.Keys(d.parts)) {
		switch word := strings.Fields(k); {
		case word[0] == "type" && len(word) == 2:
			t := map[string]any{"name": word[1], "idPrefix": "id" + strings.ReplaceAll(word[1], "_", "")}
			if targets := names(d.parts[k+" parent"]); targets != nil {
				t["relationships"] = []any{map[string]any{"relation": "parent", "targetTypes": targets}}
			}
			spec["resourceTypes"] = append(spec["resourceTypes"], t)
		case word[0] == "union":
			spec["unions"] = append(spec["unions"], map[string]any{"name": word[1], "resourceTypes": names(d.parts[k])})
		case word[0] == "action":
			spec["actions"] = append(spec["actions"], map[string]any{"name": word[1]})
		case word[0] == "bind":
			var conditions []any
			for c := range strings.FieldsSeq(d.parts[k]) {
				if c == "role" {
					conditions = append(conditions, map[string]any{"roleBinding": map[string]any{}})
				} else {
					conditions = append(conditions, map[string]any{"relationshipAction": map[string]any{"relation": c, "actionName": word[2]}})
				}
			}
			spec["actionBindings"] = append(spec["actionBindings"], map[string]any{"actionName": word[2], "typeName": word[1], "conditions": conditions})
		}
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		panic(err) //nolint:forbidigo // Strings, lists and maps can be encoded.
	}
	return string(text)
}
