package modeltest

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/seeds"
)

// simpleMerge is a simple implementation of the merge, with one bug or none.
type simpleMerge struct {
	texts  cachingParser
	bug    string
	memory map[string]lastLiveText
	names  map[string]lastLiveText // by name, for the bug inherits
	vetoed map[string]bool         // by name, for the bug removalRefused
	model  ownedDefinitions
}

// ApplyAndSettle keeps the live definitions. Then it accepts each text that is valid with them, the oldest first.
func (y *simpleMerge) ApplyAndSettle(w Declarations) (LiveState, error) {
	s := &historyStep{texts: y.texts, before: y.model, after: newOwnedDefinitions(), objects: map[string]*objectClaims{}, role: "role#subject"}
	if w.RolesType {
		s.role = "role#assignee"
	}
	s.readObjects(w, LiveState{}, y.memory)
	y.spoil(s)
	y.build(s)
	for again := true; again; {
		again = false
		for _, o := range y.order(s) {
			again = !o.whole && y.accept(s, o) || again
		}
	}
	if y.bug == deletedStays {
		for k, owner := range s.before.owner {
			if s.objects[owner] == nil && s.after.owner[k] == "" {
				s.after.setDefinitions(owner, map[string]string{k: s.before.text[k]})
			}
		}
	}
	state := LiveState{Definitions: map[string]string{}, Owners: map[string]string{}, Live: map[string]string{}}
	y.memory, y.names, y.model = map[string]lastLiveText{}, map[string]lastLiveText{}, s.after
	for _, o := range s.objects {
		if o.whole {
			o.memory, state.Live[o.name] = lastLiveText{text: o.text}, o.text
		}
		if o.document && y.bug == typelessForgotten && len(s.texts.parsePolicy(o.memory.text).ResourceTypes) == 0 {
			o.memory = lastLiveText{}
		}
		y.memory[o.id], y.names[o.name] = o.memory, o.memory
	}
	for k, text := range s.after.text {
		if !isShared(k) {
			state.Definitions[k], state.Owners[k] = text, s.after.owner[k]
		}
	}
	return state, nil
}

// isShared reports whether the key is a union or an action. Models contain neither.
func isShared(key string) bool {
	return strings.HasPrefix(key, "union ") || strings.HasPrefix(key, "action ")
}

// order returns the core module, then the other objects by age, then the discovered modules.
func (y *simpleMerge) order(s *historyStep) []*objectClaims {
	rank := func(o *objectClaims) int {
		switch {
		case o.name == CoreName:
			return 0
		case o.served && y.bug != discoveredFirst:
			return 2000
		case o.name == RolesName:
			return 1000
		case y.bug == youngerFirst:
			return 999 - o.created
		}
		return o.created
	}
	return slices.SortedFunc(maps.Values(s.objects), func(a, b *objectClaims) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.name, b.name))
	})
}

// build merges the definitions of all objects. Definitions that were live come first. Then the order decides.
func (y *simpleMerge) build(s *historyStep) {
	s.after = newOwnedDefinitions()
	order := y.order(s)
	place := func(accept func(o *objectClaims, k string) bool) {
		for _, o := range order {
			for k, text := range o.possibleDefinitions() {
				if s.after.owner[k] == "" && accept(o, k) {
					s.after.setDefinitions(o.name, map[string]string{k: text})
				}
			}
		}
	}
	// A document depends on unions and actions of others, and these depend on types.
	for range 3 {
		for _, o := range order {
			if o.document {
				o.now = s.texts.parsePolicy(o.text).definitionsIn(s.sharedNamesWith(o))
				o.last = s.texts.parsePolicy(o.memory.text).definitionsIn(s.sharedNamesWith(nil))
				maps.DeleteFunc(o.last, func(k, _ string) bool { return o.memory.removed[k] })
				s.dropLostMembers(o)
			}
		}
		s.after = newOwnedDefinitions()
		place(func(o *objectClaims, _ string) bool { return o.name == CoreName })
		place(func(o *objectClaims, k string) bool {
			return slices.Contains(s.namesOfIdenticalModules(o), s.before.owner[k]) && y.bug != liveNotFirst && !y.denied(s, o, k)
		})
		place(func(o *objectClaims, k string) bool { return !y.denied(s, o, k) })
		if y.bug == liveInPart {
			for _, o := range order {
				for k, text := range o.now {
					if s.after.owner[k] == "" {
						s.after.setDefinitions(o.name, map[string]string{k: text})
					}
				}
			}
		}
		// A removed definition makes room for others.
		for trimmed := map[string]bool{}; y.trimAll(s, trimmed); {
			place(func(o *objectClaims, k string) bool { return !y.denied(s, o, k) && !trimmed[o.name+k] })
		}
	}
}

// trimAll removes all definitions whose references are not defined, marks them in trimmed, and reports whether there
// were any.
func (y *simpleMerge) trimAll(s *historyStep, trimmed map[string]bool) (changed bool) {
	for again := true; again; {
		again = false
		for _, k := range slices.Sorted(maps.Keys(s.after.text)) {
			owner := s.after.owner[k]
			if y.trim(s, k) {
				again, changed = true, true
				trimmed[owner+k] = s.after.owner[k] == ""
			}
		}
	}
	return changed
}

// trim removes the invalid terms of a definition and reports whether there were any.
func (y *simpleMerge) trim(s *historyStep, k string) bool {
	o, text := s.objects[s.after.owner[k]], s.after.text[k]
	terms := []string{text}
	if o.document {
		terms = splitTerms(text)
	}
	held := slices.DeleteFunc(slices.Clone(terms), func(term string) bool { return !y.holds(s, o, k, term) })
	if len(held) == len(terms) {
		return false
	}
	s.after.text[k] = strings.Join(held, or)
	if len(held) == 0 {
		s.after.removeKey(k)
	}
	return true
}

// holds reports whether a term is valid. If the owner of a definition also declares its type, it must own the type.
func (y *simpleMerge) holds(s *historyStep, o *objectClaims, k, term string) bool {
	typ, _, _ := strings.Cut(k, "#")
	if _, own := o.possibleDefinitions()[typ]; own && !slices.Contains(s.namesOfIdenticalModules(o), s.after.owner[typ]) {
		return false
	}
	return s.after.hasDefinedReferences(k, term, o.document)
}

// accept makes the declared text of o live if the whole text is valid together with all texts accepted before.
// Otherwise it changes nothing. It reports the result.
func (y *simpleMerge) accept(s *historyStep, o *objectClaims) bool {
	if o.now == nil || y.vetoed[o.name] || y.bug == rejectedClaims && y.claimed(s, o) {
		return false
	}
	was := s.after
	o.whole = true
	y.build(s)
	if s.checkLiveTextsComplete() == nil && (!o.document || s.hasReferencedNames(s.after, s.texts.parsePolicy(o.text)) && (y.bug == breaksOthers || !y.breaks(s, o, was))) && (y.bug != needRefuses || !y.takes(s, o, was)) {
		return true
	}
	o.whole = false
	y.build(s)
	return false
}

// breaks reports whether a document removes terms of another document.
func (y *simpleMerge) breaks(s *historyStep, o *objectClaims, was ownedDefinitions) bool {
	for k, owner := range s.after.owner {
		if owner != o.name && s.objects[owner].document && len(termsWithout(splitTerms(was.text[k]), splitTerms(s.after.text[k]))) > 0 {
			return true
		}
	}
	return false
}

// takes reports whether the text removes a definition of another object.
func (y *simpleMerge) takes(s *historyStep, o *objectClaims, was ownedDefinitions) bool {
	for k, owner := range was.owner {
		if owner != o.name && s.after.owner[k] == "" && !isShared(k) {
			return true
		}
	}
	return false
}

// claimed reports whether an older text that is not live declares a definition of o.
func (y *simpleMerge) claimed(s *historyStep, o *objectClaims) bool {
	for _, x := range s.objects {
		for k := range x.now {
			if _, has := o.now[k]; has && x.name != o.name && !x.whole && x.created < o.created {
				return true
			}
		}
	}
	return false
}

// denied reports whether a bug keeps a definition from being live.
func (y *simpleMerge) denied(s *historyStep, o *objectClaims, k string) bool {
	switch y.bug {
	case coreEndsDiscovery:
		return o.served && !s.objects[CoreName].whole
	case rejectedTakes:
		return slices.ContainsFunc(s.list, func(x *objectClaims) bool {
			return x != o && x.name != CoreName && !x.whole && x.now[k] != "" && x.last[k] == ""
		})
	default:
		return false
	}
}

// spoil applies the bugs that change the definitions of objects.
func (y *simpleMerge) spoil(s *historyStep) {
	y.vetoed = map[string]bool{}
	for _, o := range s.list {
		switch {
		case o.name == RolesName:
		case y.bug == unreadableEnds && o.now == nil:
			o.memory, o.last = lastLiveText{}, nil
		case y.bug == removesNothing || y.bug == needRefuses:
			o.memory.removed, o.last = nil, s.texts.parseModule(o.memory.text)
		case y.bug == removalRefused && y.needed(s, o):
			o.memory.removed, y.vetoed[o.name] = nil, true
		case y.bug == inherits:
			o.memory = y.names[o.name]
			o.readDefinitions(s)
		}
	}
}

// needed reports whether another document mentions a definition that a document has removed.
func (y *simpleMerge) needed(s *historyStep, o *objectClaims) bool {
	for k := range o.memory.removed {
		if slices.ContainsFunc(s.list, func(x *objectClaims) bool {
			return o.document && x.document && x != o && s.sharedNamesWith(nil).isMentioned(x.text, k)
		}) {
			return true
		}
	}
	return false
}

// Bugs of the toy.
const (
	rejectedTakes     = "a rejected text takes what is live from others"
	unreadableEnds    = "an unreadable text ends what was live of its object"
	coreEndsDiscovery = "a core module with an error ends discovery"
	typelessForgotten = "the last text of a document without types is forgotten"
	breaksOthers      = "a document breaks others"
	liveInPart        = "a rejected text is live in part"
	removesNothing    = "a rejected edit removes nothing"
	needRefuses       = "a need refuses a removal"
	removalRefused    = "a document's removal is refused"
	liveNotFirst      = "what is live does not come first"
	youngerFirst      = "the younger comes first"
	discoveredFirst   = "what is discovered comes first"
	rejectedClaims    = "a rejected text claims"
	deletedStays      = "what is deleted stays live"
	inherits          = "an object made again inherits"
)

func TestReferenceAcceptsMerge(t *testing.T) {
	CheckRandomHistories(t, seeds.RoundCount(t, 20), 2, func() SystemUnderTest { return newSimpleMerge("") })
}

func TestReferenceFindsDocumentThatBreaksOthers(t *testing.T) {
	added := rareHistories()[1]
	if err := findDifference(added, func() SystemUnderTest { return newSimpleMerge("") }); err != nil {
		t.Error(err)
	}
	if err := findDifference(added, func() SystemUnderTest { return newSimpleMerge(breaksOthers) }); err == nil {
		t.Error("got no difference, want one")
	}
}

func TestReferenceFindsBug(t *testing.T) {
	for _, bug := range []string{
		rejectedTakes, unreadableEnds, coreEndsDiscovery, typelessForgotten, liveInPart, removesNothing,
		needRefuses, removalRefused, liveNotFirst, youngerFirst, discoveredFirst, rejectedClaims, deletedStays, inherits,
	} {
		t.Run(bug, func(t *testing.T) {
			for round := range 100 {
				if err := findDifference(randomHistory(rand.New(rand.NewPCG(2, uint64(round))), discovered), func() SystemUnderTest { return newSimpleMerge(bug) }); err != nil {
					t.Logf("history %d: %v", round, err)
					return
				}
			}
			t.Error("got no difference in 100 histories, want one")
		})
	}
}

func newSimpleMerge(bug string) *simpleMerge {
	return &simpleMerge{texts: newCachingParser(), bug: bug, model: newOwnedDefinitions()}
}
