package modeltest

import (
	"maps"
	"slices"
	"strings"

	"github.com/openfga/language/pkg/go/transformer"
	"sigs.k8s.io/yaml"
)

// ownedDefinitions holds the texts of definitions and the objects that own them, by key.
type ownedDefinitions struct{ text, owner map[string]string }

func newOwnedDefinitions() ownedDefinitions {
	return ownedDefinitions{text: map[string]string{}, owner: map[string]string{}}
}

// setDefinitions adds or replaces definitions of an owner.
func (m ownedDefinitions) setDefinitions(owner string, definitions map[string]string) {
	for k, text := range definitions {
		m.text[k], m.owner[k] = text, owner
	}
}

// withoutOwner returns the definitions except those of one owner.
func (m ownedDefinitions) withoutOwner(owner string) ownedDefinitions {
	rest := newOwnedDefinitions()
	for k, text := range m.text {
		if m.owner[k] != owner {
			rest.setDefinitions(m.owner[k], map[string]string{k: text})
		}
	}
	return rest
}

func (m ownedDefinitions) removeKey(key string) {
	delete(m.text, key)
	delete(m.owner, key)
}

// cachingParser parses texts and caches the results.
type cachingParser struct {
	modules  map[string]map[string]string
	policies map[string]policyDocument
}

func newCachingParser() cachingParser {
	return cachingParser{modules: map[string]map[string]string{}, policies: map[string]policyDocument{}}
}

// parseModule returns the definitions of a module, or nil if the text has a syntax error.
func (r cachingParser) parseModule(text string) map[string]string {
	if all, done := r.modules[text]; done {
		return maps.Clone(all)
	}
	parsed, extended, err := transformer.TransformModularDSLToProto(text)
	if err != nil {
		r.modules[text] = nil
		return nil
	}
	all := ModelDefinitions(parsed)
	for typ := range extended {
		delete(all, typ)
	}
	r.modules[text] = all
	return maps.Clone(all)
}

// parsePolicy returns the content of a document, or an empty policy if the text has a syntax error.
func (r cachingParser) parsePolicy(text string) policyDocument {
	p, done := r.policies[text]
	if !done && yaml.Unmarshal([]byte(text), &p) != nil {
		p = policyDocument{}
	}
	r.policies[text] = p
	return p
}

// referencesOf returns the keys that a term of a relation refers to. For a term "relation from step", targets holds
// one key for each type that step leads to.
func (m ownedDefinitions) referencesOf(typ, term string) (keys, targets []string) {
	if direct, ok := strings.CutPrefix(term, "["); ok {
		ref, condition, conditional := strings.Cut(strings.TrimSuffix(direct, "]"), " with ")
		if conditional {
			keys = append(keys, "condition "+condition)
		}
		return append(keys, strings.TrimSuffix(ref, ":*")), nil
	}
	relation, step, isStep := strings.Cut(term, " from ")
	if !isStep {
		return []string{typ + "#" + relation}, nil
	}
	for _, target := range splitTerms(m.text[typ+"#"+step]) {
		targets = append(targets, strings.Trim(target, "[]")+"#"+relation)
	}
	return []string{typ + "#" + step}, targets
}

// hasDefinedReferences reports whether the type of a relation and all references of its terms are defined. A term with
// "from" needs at least one defined target, or all targets if strict is true.
func (m ownedDefinitions) hasDefinedReferences(key, text string, strict bool) bool {
	typ, _, isRelation := strings.Cut(key, "#")
	if !isRelation {
		return true
	}
	for _, term := range splitTerms(text) {
		keys, targets := m.referencesOf(typ, term)
		defined := len(m.missingKeys(targets))
		if len(m.missingKeys(append(keys, typ))) > 0 || (len(targets) > 0 && defined == len(targets)) || (strict && defined > 0) {
			return false
		}
	}
	return true
}

// missingKeys returns the keys that are not defined.
func (m ownedDefinitions) missingKeys(keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return m.owner[k] != "" })
}

// pruneUndefined removes definitions whose references are not defined, except definitions of one owner. It repeats
// this until all references are defined.
func (m ownedDefinitions) pruneUndefined(except string) {
	for again := true; again; {
		again = false
		for _, k := range slices.Sorted(maps.Keys(m.text)) {
			if m.owner[k] != except && !m.hasDefinedReferences(k, m.text[k], true) {
				m.removeKey(k)
				again = true
			}
		}
	}
}
