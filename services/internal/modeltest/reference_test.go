package modeltest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
)

// toy is a straightforward merge, with one bug or none.
type toy struct {
	reader
	bug    string
	memory map[string]memory
	model  model
}

// Settle merges what was live, and then accepts each text that fits, the oldest first.
func (y *toy) Settle(w World) (State, error) {
	s := &step{reader: y.reader, before: y.model, after: newModel(), objects: map[string]*object{}, role: "role#subject"}
	if w.RolesType {
		s.role = "role#assignee"
	}
	s.read(w, State{}, y.memory)
	y.spoil(s)
	y.build(s)
	for again := true; again; {
		again = false
		for _, o := range y.order(s) {
			again = !o.whole && y.accept(s, o) || again
		}
	}
	state := State{Definitions: map[string]string{}, Owners: map[string]string{}, Live: map[string]string{}}
	y.memory, y.model = map[string]memory{}, s.after
	for _, o := range s.objects {
		if o.whole {
			o.memory, state.Live[o.name] = memory{text: o.text}, o.text
		}
		y.memory[o.id] = o.memory
	}
	for k, text := range s.after.text {
		if !isShared(k) {
			state.Definitions[k], state.Owners[k] = text, s.after.owner[k]
		}
	}
	return state, nil
}

// isShared reports whether the key is of a union or an action, which no model has.
func isShared(key string) bool {
	return strings.HasPrefix(key, "union ") || strings.HasPrefix(key, "action ")
}

// order returns the core module, then the older objects first, then what is discovered.
func (y *toy) order(s *step) []*object {
	rank := func(o *object) int {
		switch {
		case o.name == CoreName:
			return 0
		case o.served && y.bug != "discovered modules come first":
			return 2000
		case o.name == RolesName:
			return 1000
		case y.bug == "the younger comes first":
			return 999 - o.created
		}
		return o.created
	}
	return slices.SortedFunc(maps.Values(s.objects), func(a, b *object) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.name, b.name))
	})
}

// build makes the model of what each object may have: what was live first, then by order.
func (y *toy) build(s *step) {
	s.after = newModel()
	order := y.order(s)
	place := func(accept func(o *object, k string) bool) {
		for _, o := range order {
			for k, text := range o.may() {
				if s.after.owner[k] == "" && accept(o, k) {
					s.after.set(o.name, map[string]string{k: text})
				}
			}
		}
	}
	for range 3 { // What a document says depends on unions and actions of others, and these on types.
		for _, o := range order {
			if o.document {
				o.now = s.policy(o.text).definitions(s.vocabulary(o))
				o.last = s.policy(o.memory.text).definitions(s.vocabulary(nil))
				maps.DeleteFunc(o.last, func(k, _ string) bool { return o.memory.removed[k] })
			}
		}
		s.after = newModel()
		place(func(o *object, _ string) bool { return o.name == CoreName })
		place(func(o *object, k string) bool {
			return slices.Contains(s.twins(o), s.before.owner[k]) && y.bug != "what is live does not come first"
		})
		place(func(*object, string) bool { return true })
		for again := true; again; {
			again = false
			for _, k := range slices.Sorted(maps.Keys(s.after.text)) {
				again = y.trim(s, k) || again
			}
		}
	}
}

// trim removes from a definition what does not hold, and reports whether there was anything.
func (y *toy) trim(s *step, k string) bool {
	o, text := s.objects[s.after.owner[k]], s.after.text[k]
	terms := []string{text}
	if o.document {
		terms = split(text)
	}
	held := slices.DeleteFunc(slices.Clone(terms), func(term string) bool { return !y.holds(s, o, k, term) })
	if len(held) == len(terms) {
		return false
	}
	s.after.text[k] = strings.Join(held, or)
	if len(held) == 0 {
		s.after.remove(k)
	}
	return true
}

// holds reports whether a term holds. What a type's owner defines needs that type to be the owner's.
func (y *toy) holds(s *step, o *object, k, term string) bool {
	typ, _, _ := strings.Cut(k, "#")
	if _, own := o.may()[typ]; own && !slices.Contains(s.twins(o), s.after.owner[typ]) {
		return false
	}
	return s.after.holds(k, term, o.document)
}

// accept makes the declared text live, and reports whether all of it, and of all that were accepted before, is.
func (y *toy) accept(s *step, o *object) bool {
	if o.now == nil || y.bug == "a rejected text claims" && y.claimed(s, o) {
		return false
	}
	was := maps.Clone(s.after.text)
	o.whole = true
	y.build(s)
	if s.complete() == nil && (!o.document || s.meets(s.after, s.policy(o.text)) && !y.breaks(s, o, was)) {
		return true
	}
	o.whole = false
	y.build(s)
	return false
}

// breaks reports whether a document takes terms from another document.
func (y *toy) breaks(s *step, o *object, was map[string]string) bool {
	for k, owner := range s.after.owner {
		if owner != o.name && s.objects[owner].document && len(without(split(was[k]), split(s.after.text[k]))) > 0 {
			return y.bug != "a document breaks others"
		}
	}
	return false
}

// claimed reports whether a text that is not live has a definition of o.
func (y *toy) claimed(s *step, o *object) bool {
	for _, x := range s.objects {
		for k := range x.now {
			if _, has := o.now[k]; has && x.name != o.name && !x.whole && x.created < o.created {
				return true
			}
		}
	}
	return false
}

// spoil adds the bugs that are in what objects may have.
func (y *toy) spoil(s *step) {}

func TestReferenceAcceptsMerge(t *testing.T) {
	Run(t, 2000, 1, func() System { return &toy{reader: newReader(), model: newModel()} })
}
