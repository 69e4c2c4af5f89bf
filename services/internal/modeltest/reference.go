package modeltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// referenceChecker checks the states of one history against docs/guides/stores-and-models.md.
//
// It does not predict the model. It keeps the last live text of each object, and checks properties of each change of
// state.
type referenceChecker struct {
	texts  cachingParser
	before ownedDefinitions
	memory map[string]lastLiveText // last live text by object identity
}

// lastLiveText holds an object's last text whose definitions were all live, and the definitions that its owner has
// removed since.
type lastLiveText struct {
	text    string
	removed map[string]bool
}

// objectClaims holds the definitions of one object in one state.
type objectClaims struct {
	name, id, text string
	created        int
	document       bool
	served         bool // the API server serves the resource, so the object is discovered
	whole          bool // all definitions of the declared text are live
	memory         lastLiveText
	now            map[string]string // definitions of the declared text; nil if it has a syntax error
	last           map[string]string // definitions of the last live text, without removed ones
}

// possibleDefinitions returns the definitions that may be live: those of the declared text, or those of the last live
// text. Live definitions never come from both texts.
func (o *objectClaims) possibleDefinitions() map[string]string {
	if o.whole {
		return o.now
	}
	return o.last
}

// hasLiveCore reports whether a definition of the core module is live. Otherwise there is no model.
func (s *historyStep) hasLiveCore() bool {
	return slices.Contains(slices.Collect(maps.Values(s.after.owner)), CoreName)
}

// historyStep is the change from one state to the next.
type historyStep struct {
	texts         cachingParser
	list          []*objectClaims // all objects, sorted by name
	before, after ownedDefinitions
	objects       map[string]*objectClaims
	role          string // the relation that holds the members of a role
	discovered    bool   // discovered modules were live in the previous state
}

// checkState returns an error for the first difference between the live state s and the documented result for the
// declarations w.
func (r *referenceChecker) checkState(w Declarations, s LiveState) error {
	now := &historyStep{texts: r.texts, before: r.before, after: newOwnedDefinitions(), objects: map[string]*objectClaims{}, role: "role#subject"}
	if w.RolesType {
		now.role = "role#assignee"
	}
	for k, text := range s.Definitions {
		now.after.text[k], now.after.owner[k] = text, s.Owners[k]
	}
	for _, owner := range r.before.owner {
		now.discovered = now.discovered || strings.HasPrefix(owner, "discovered/")
	}
	now.readObjects(w, s, r.memory)
	for _, rule := range []func() error{
		now.checkReferencesDefined, now.checkOwnersDeclare, now.checkLiveTextsComplete, now.checkDefinitionsKept,
		now.checkUncontestedAccepted, now.checkPrecedenceOrder,
	} {
		if err := rule(); err != nil {
			return err
		}
	}
	r.before, r.memory = now.after, map[string]lastLiveText{}
	for _, o := range now.objects {
		if o.whole {
			o.memory = lastLiveText{text: o.text}
		}
		r.memory[o.id] = o.memory
	}
	return nil
}

// readObjects sets the objects of the new state. It also adds the unions and actions in effect to the definitions.
func (s *historyStep) readObjects(w Declarations, state LiveState, memories map[string]lastLiveText) {
	add := func(o *objectClaims) {
		o.whole, o.memory = state.Live[o.name] == o.text, memories[o.id]
		s.objects[o.name] = o
	}
	add(&objectClaims{name: CoreName, id: CoreName, text: w.Core})
	for _, m := range w.Modules {
		add(&objectClaims{name: "authorizationmodel/" + m.Name, id: fmt.Sprint(m.Name, m.Created), text: m.Text, created: m.Created})
	}
	for _, d := range w.Discovered {
		add(&objectClaims{name: "discovered/" + d.Name, id: "discovered/" + d.Name, text: d.Text, served: true})
	}
	for _, d := range w.Documents {
		add(&objectClaims{
			name: "policydocument/" + d.Name, id: fmt.Sprint("document", d.Name, d.Created),
			text: d.Text, created: d.Created, document: true,
		})
	}
	s.list = slices.SortedFunc(maps.Values(s.objects), func(a, b *objectClaims) int { return strings.Compare(a.name, b.name) })
	for _, o := range s.list {
		o.readDefinitions(s)
	}
	for _, o := range s.list {
		for k, text := range o.possibleDefinitions() {
			if o.document && strings.Contains(k, " ") && s.after.owner[k] == "" {
				s.after.setDefinitions(o.name, map[string]string{k: text})
			}
		}
	}
	if len(w.Documents) > 0 && !w.RolesType {
		s.objects[RolesName] = &objectClaims{name: RolesName, id: RolesName, last: map[string]string{"role": "type role", "role#subject": "[user]"}}
		s.list = append(s.list, s.objects[RolesName])
	}
}

// readDefinitions sets the definitions of an object. It removes from the last live text the definitions that the
// declared text no longer has.
func (o *objectClaims) readDefinitions(s *historyStep) {
	if o.document {
		o.now = s.texts.parsePolicy(o.text).definitionsIn(s.sharedNamesWith(o))
		o.last = s.texts.parsePolicy(o.memory.text).definitionsIn(s.sharedNamesWith(nil))
	} else {
		o.now = s.texts.parseModule(o.text)
		o.last = s.texts.parseModule(o.memory.text)
	}
	maps.DeleteFunc(o.last, func(k, _ string) bool { return o.memory.removed[k] })
	s.dropLostMembers(o)
	if o.now == nil {
		return
	}
	removed := maps.Clone(o.memory.removed)
	if removed == nil {
		removed = map[string]bool{}
	}
	needed := o.neededDefinitions()
	for k := range o.last {
		_, kept := o.now[k]
		if o.document {
			kept = s.sharedNamesWith(nil).isMentioned(o.text, k)
		}
		removed[k] = !kept && !needed[k]
	}
	maps.DeleteFunc(removed, func(_ string, is bool) bool { return !is })
	o.memory.removed = removed
	maps.DeleteFunc(o.last, func(k, _ string) bool { return removed[k] })
}

// neededDefinitions returns the definitions of the last live text that kept definitions refer to. A definition is kept
// if the declared text also has it.
func (o *objectClaims) neededDefinitions() map[string]bool {
	needed := map[string]bool{}
	// Definitions of documents are removed individually.
	if o.document {
		return needed
	}
	last := newOwnedDefinitions()
	last.setDefinitions(o.name, o.last)
	var visit func(k string)
	visit = func(k string) {
		typ, _, _ := strings.Cut(k, "#")
		for _, term := range splitTerms(o.last[k]) {
			keys, targets := last.referencesOf(typ, term)
			for _, ref := range append(append(keys, targets...), typ) {
				if refType, _, isRelation := strings.Cut(ref, "#"); isRelation {
					needed[refType] = true
				}
				if !needed[ref] {
					needed[ref] = true
					visit(ref)
				}
			}
		}
	}
	for k := range o.last {
		if _, kept := o.now[k]; kept && strings.Contains(k, "#") {
			visit(k)
		}
	}
	return needed
}

// sharedNamesWith returns the unions and actions in effect. It treats the declared text of trial as live; trial may be
// nil.
func (s *historyStep) sharedNamesWith(trial *objectClaims) sharedNames {
	v := sharedNames{unions: map[string][]string{}, actions: map[string]bool{}, types: map[string]bool{}, role: s.role}
	for k, owner := range s.after.owner {
		v.types[k] = strings.HasPrefix(owner, "policydocument/")
	}
	for _, o := range s.list {
		if !o.document {
			continue
		}
		if o.whole || o == trial {
			p := s.texts.parsePolicy(o.text)
			v.addPolicy(p, func(string, string) bool { return true })
			for _, t := range p.ResourceTypes {
				v.types[t.Name] = v.types[t.Name] || o == trial
			}
			continue
		}
		v.addPolicy(s.texts.parsePolicy(o.memory.text), func(k, member string) bool {
			return !o.memory.removed[k] && v.isMentioned(o.text, k) && !s.isLostMember(o, k, member)
		})
	}
	return v
}

// isLostMember reports whether a union in a last live text lost a member in an earlier state. Such a member remains
// removed until the declared text is valid.
func (s *historyStep) isLostMember(o *objectClaims, union, member string) bool {
	modeled := slices.Contains(slices.Collect(maps.Values(s.before.owner)), CoreName)
	return modeled && member != "" && (s.before.owner[union] != o.name || !slices.Contains(splitTerms(s.before.text[union]), member))
}

// dropLostMembers removes lost members from the unions in a document's last live text.
func (s *historyStep) dropLostMembers(o *objectClaims) {
	for k, text := range o.last {
		if o.document && strings.HasPrefix(k, "union ") {
			left := slices.DeleteFunc(splitTerms(text), func(member string) bool { return s.isLostMember(o, k, member) })
			o.last[k] = strings.Join(left, or)
		}
	}
	maps.DeleteFunc(o.last, func(_, text string) bool { return text == "" })
}

// namesOfIdenticalModules returns the name of o, and the names of modules with the same declared or last live text.
func (s *historyStep) namesOfIdenticalModules(o *objectClaims) []string {
	names := []string{o.name}
	for _, x := range s.list {
		same := func(text string) bool { return text != "" && (text == o.text || text == o.memory.text) }
		if x != o && !o.document && !x.document && (same(x.text) || same(x.memory.text)) {
			names = append(names, x.name)
		}
	}
	return names
}
