package modeltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkReferencesDefined requires that all references in the live model are defined.
func (s *historyStep) checkReferencesDefined() error {
	for _, k := range slices.Sorted(maps.Keys(s.after.text)) {
		if !s.after.hasDefinedReferences(k, s.after.text[k], false) {
			return fmt.Errorf("%q is live as %q, which refers to what is not defined", k, s.after.text[k])
		}
	}
	return nil
}

// checkOwnersDeclare requires that the owner of each live definition declares it. The definition must be in the
// owner's declared text if that is live, otherwise in its last live text.
func (s *historyStep) checkOwnersDeclare() error {
	for _, k := range slices.Sorted(maps.Keys(s.after.text)) {
		owner := s.objects[s.after.owner[k]]
		if owner == nil {
			return fmt.Errorf("%q of %q is live, an object that is not there", k, s.after.owner[k])
		}
		may := func(name string) bool { return hasDefinition(s.objects[name], k, s.after.text[k]) }
		if !slices.ContainsFunc(s.namesOfIdenticalModules(owner), may) {
			return fmt.Errorf("%q of %q is live as %q, but the text that is live there says %q", k, owner.name, s.after.text[k], owner.possibleDefinitions()[k])
		}
	}
	return nil
}

// hasDefinition reports whether o may own the definition with this text. A module must declare exactly this text. A
// document must declare each term of the text.
func hasDefinition(o *objectClaims, key, text string) bool {
	mine, has := o.possibleDefinitions()[key]
	if !o.document || !has {
		return has && mine == text
	}
	return len(termsWithout(splitTerms(text), splitTerms(mine))) == 0
}

// termsWithout returns the terms that others does not contain.
func termsWithout(terms, others []string) []string {
	return slices.DeleteFunc(terms, func(t string) bool { return slices.Contains(others, t) })
}

// checkLiveTextsComplete requires that all definitions of a text are live if the text is reported as live.
func (s *historyStep) checkLiveTextsComplete() error {
	for _, o := range s.list {
		if !o.whole || !s.hasLiveCore() {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(o.now)) {
			if s.after.text[k] != o.now[k] || !slices.Contains(s.namesOfIdenticalModules(o), s.after.owner[k]) {
				return fmt.Errorf("%q counts as live, but not its %q: that is %q of %q", o.name, k, s.after.text[k], s.after.owner[k])
			}
		}
	}
	return nil
}

// checkDefinitionsKept requires that a live definition stays live with the same owner while the owner's last live text
// has it. There are two exceptions: the core module may take it over, and its references may no longer be defined.
func (s *historyStep) checkDefinitionsKept() error {
	rest, claims := newOwnedDefinitions(), map[string]string{}
	maps.Copy(rest.text, s.after.text)
	maps.Copy(rest.owner, s.after.owner)
	s.dropAddedTerms(rest)
	for k, text := range s.before.text {
		o := s.objects[s.before.owner[k]]
		if o == nil || o.whole || o.now != nil && o.now[k] == "" || o.last[k] == "" || strings.Contains(k, " ") && o.document || s.after.owner[k] == CoreName || o.name == RolesName && !s.hasRoleBindings() {
			continue
		}
		claims[k] = o.last[k]
		if o.document {
			claims[k] = commonTerms(commonTerms(text, o.last[k]), o.now[k])
		}
		if claims[k] == "" {
			delete(claims, k)
		}
	}
	s.removeInvalidClaims(rest, claims)
	for _, k := range slices.Sorted(maps.Keys(claims)) {
		o, owner := s.objects[s.before.owner[k]], s.after.owner[k]
		if owner != "" && !slices.Contains(s.namesOfIdenticalModules(o), owner) {
			if !s.isValidTerm(s.after.withoutOwner(owner), o, k, claims[k]) {
				// The claimed definition would refer to other definitions of the new owner, so it is not valid.
				continue
			}
			return fmt.Errorf("%q of %q was live, and %q took it over", k, o.name, owner)
		}
		lost := termsWithout(splitTerms(claims[k]), splitTerms(s.after.text[k]))
		if _, live := s.after.text[k]; !live || len(lost) > 0 && o.document {
			return fmt.Errorf("%q of %q was live, is still declared and holds, but %q is lost", k, o.name, lost)
		}
	}
	return nil
}

// dropAddedTerms removes from rest the terms that documents have added. A new term must not excuse the loss of another
// term.
func (s *historyStep) dropAddedTerms(rest ownedDefinitions) {
	for k, text := range s.before.text {
		o, kept := s.objects[s.before.owner[k]], commonTerms(rest.text[k], text)
		if o != nil && o.document && o.last[k] != "" && kept != "" {
			rest.text[k] = kept
		}
	}
}

// commonTerms returns the terms that a and b have in common.
func commonTerms(a, b string) string {
	return strings.Join(slices.DeleteFunc(splitTerms(a), func(t string) bool { return !slices.Contains(splitTerms(b), t) }), or)
}

// removeInvalidClaims removes definitions from claims if they refer to something that neither rest nor claims defines.
func (s *historyStep) removeInvalidClaims(rest ownedDefinitions, claims map[string]string) {
	for k, text := range claims {
		if rest.owner[k] == "" {
			rest.setDefinitions(s.before.owner[k], map[string]string{k: text})
		}
	}
	for again := true; again; {
		again = false
		for k, text := range claims {
			o := s.objects[s.before.owner[k]]
			terms := []string{text}
			if o.document {
				terms = splitTerms(text)
			}
			held := slices.DeleteFunc(slices.Clone(terms), func(term string) bool { return !s.isValidTerm(rest, o, k, term) })
			if len(held) == len(terms) {
				continue
			}
			again = true
			claims[k] = strings.Join(held, or)
			if len(held) == 0 {
				delete(claims, k)
			}
			if s.after.owner[k] == "" {
				rest.removeKey(k)
				if len(held) > 0 {
					rest.setDefinitions(o.name, map[string]string{k: claims[k]})
				}
			}
		}
	}
}

// isValidTerm reports whether term may be part of o's definition key, given the definitions m. m must define all that
// term refers to. If o declares the relation's type, o or a module with the same text must own it. A document may refer
// only to names that documents own, or to the relation of roles.
func (s *historyStep) isValidTerm(m ownedDefinitions, o *objectClaims, key, term string) bool {
	typ, _, isRelation := strings.Cut(key, "#")
	if !isRelation {
		return true
	}
	if _, own := o.last[typ]; own && !slices.Contains(s.namesOfIdenticalModules(o), m.owner[typ]) {
		return false
	}
	if action := actionOf(key, term); o.document && action != "" && m.owner["action "+action] == "" {
		return false
	}
	return m.hasDefinedReferences(key, term, true) && (!o.document || s.hasOnlyDocumentReferences(m, typ, term))
}

// hasOnlyDocumentReferences reports whether a term of a document's relation refers only to definitions of documents.
// The relation of roles may be another's.
func (s *historyStep) hasOnlyDocumentReferences(m ownedDefinitions, typ, term string) bool {
	keys, targets := m.referencesOf(typ, term)
	return !slices.ContainsFunc(append(append(keys, targets...), typ), func(k string) bool {
		return k != s.role && !strings.HasPrefix(m.owner[k], "policydocument/")
	})
}

// actionOf returns the action of a document to which a term of a relation belongs, or "" for a relationship.
func actionOf(key, term string) string {
	_, relation, _ := strings.Cut(key, "#")
	action, role := strings.CutSuffix(relation, "_role")
	if !role && strings.HasPrefix(term, "[") {
		return ""
	}
	return action
}

// hasRoleBindings reports whether a live document has role bindings.
func (s *historyStep) hasRoleBindings() bool {
	return slices.ContainsFunc(s.list, func(o *objectClaims) bool {
		return o.document && o.whole && strings.Contains(o.text, "roleBinding")
	})
}

// checkUncontestedAccepted requires that a text without syntax errors is live if its references are defined and no
// other object owns its definitions.
func (s *historyStep) checkUncontestedAccepted() error {
	for _, o := range s.list {
		if s.isOutcomeDocumented(o) && (o.name == CoreName || len(s.keysOwnedByOthers(o)) == 0) && s.canBeLive(o, nil, s.after) {
			return fmt.Errorf("the text of %q is not live, and nothing stands against it", o.name)
		}
	}
	return nil
}

// checkPrecedenceOrder requires that the older of two texts wins if both define the same name and neither was live with
// it before. Discovered modules lose against all others.
func (s *historyStep) checkPrecedenceOrder() error {
	for _, o := range s.list {
		opponents := s.keysOwnedByOthers(o)
		junior := func(k string) bool { return s.isOutrankedBy(s.objects[s.after.owner[k]], o, k) }
		if !s.isOutcomeDocumented(o) || o.name == CoreName || len(opponents) == 0 || slices.ContainsFunc(opponents, func(k string) bool { return !junior(k) }) {
			continue
		}
		out := map[string]bool{}
		for _, k := range opponents {
			out[s.after.owner[k]] = true
		}
		if s.canBeLive(o, out, s.before) {
			return fmt.Errorf("the text of %q is not live, and nothing stands against it but the lesser %q", o.name, slices.Sorted(maps.Keys(out)))
		}
	}
	return nil
}

// isOutcomeDocumented reports whether the documentation states if the declared text of o must be live. It does not
// state this for empty texts, for documents that may invalidate other documents, and without a core module.
func (s *historyStep) isOutcomeDocumented(o *objectClaims) bool {
	if o.whole || len(o.now) == 0 || !s.hasLiveCore() && o.name != CoreName ||
		o.document && s.texts.parsePolicy(o.text).bindsActionTwice(s.sharedNamesWith(o)) {
		return false
	}
	for k, text := range o.now {
		if o.document && o.last[k] != "" && len(termsWithout(splitTerms(text), splitTerms(o.last[k]))) > 0 {
			return false
		}
	}
	return true
}

// keysOwnedByOthers returns the definitions of the declared text that other objects own.
func (s *historyStep) keysOwnedByOthers(o *objectClaims) (keys []string) {
	for _, k := range slices.Sorted(maps.Keys(o.now)) {
		if owner := s.objects[s.after.owner[k]]; owner != nil && owner != o && (owner.document || o.document || owner.text != o.text) {
			keys = append(keys, k)
		}
	}
	return keys
}

// isOutrankedBy reports whether o precedes other, the present owner of the definition. The documentation does not
// order documents and modules by age, and does not rank the roles' module.
func (s *historyStep) isOutrankedBy(other, o *objectClaims, key string) bool {
	switch {
	case other.name == CoreName, other.name == RolesName, other.document != o.document:
		return false
	case slices.Contains(s.namesOfIdenticalModules(other), s.before.owner[key]), other.last[key] != "":
		return false
	case other.served || o.served:
		return !o.served && s.discovered
	default:
		return o.created < other.created
	}
}

// canBeLive reports whether the declared text of o is valid beside the definitions that are live after the step. It
// leaves out the definitions of objects in out, and those that present lacks, except the core module's. Unless o is a
// document, it also leaves out modules with o's text, which would become live with o. The last text of the roles module
// always counts.
func (s *historyStep) canBeLive(o *objectClaims, out map[string]bool, present ownedDefinitions) bool {
	m := newOwnedDefinitions()
	if roles := s.objects[RolesName]; roles != nil {
		m.setDefinitions(RolesName, roles.last)
	}
	for k, text := range s.after.text {
		owner := s.after.owner[k]
		same := owner == o.name || !o.document && s.objects[owner] != nil && s.objects[owner].text == o.text
		if !same && !out[owner] && (present.owner[k] != "" || owner == CoreName) {
			m.setDefinitions(owner, map[string]string{k: text})
		}
	}
	m.setDefinitions(o.name, o.now)
	s.removeRelationsOfTypes(m, o)
	m.pruneUndefined(o.name)
	for k, text := range o.now {
		typ, _, isRelation := strings.Cut(k, "#")
		if !m.hasDefinedReferences(k, text, true) || o.document && isRelation &&
			slices.ContainsFunc(splitTerms(text), func(term string) bool { return !s.hasOnlyDocumentReferences(m, typ, term) }) {
			return false
		}
	}
	return !o.document || s.hasReferencedNames(m, s.texts.parsePolicy(o.text))
}

// removeRelationsOfTypes removes the relations that other objects declare for a type, if the type now belongs to o and
// these objects declare the type, too. So no module can need a relation that only its former twin has.
func (s *historyStep) removeRelationsOfTypes(m ownedDefinitions, o *objectClaims) {
	for k, owner := range maps.Clone(m.owner) {
		typ, _, isRelation := strings.Cut(k, "#")
		if other := s.objects[owner]; isRelation && owner != o.name && m.owner[typ] == o.name && other != nil && other.possibleDefinitions()[typ] != "" {
			m.removeKey(k)
		}
	}
}

// hasReferencedNames reports whether documents own all names that the policy refers to, and at least one type. m holds
// the owners.
func (s *historyStep) hasReferencedNames(m ownedDefinitions, p policyDocument) bool {
	of := func(k string) bool { return strings.HasPrefix(m.owner[k], "policydocument/") }
	typed := slices.ContainsFunc(slices.Collect(maps.Keys(m.owner)), func(k string) bool { return !strings.ContainsAny(k, " #") && of(k) })
	return typed && !slices.ContainsFunc(p.referencedNames(), func(n string) bool { return !of(n) && !of("union "+n) })
}
