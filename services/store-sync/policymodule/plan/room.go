package plan

import (
	"fmt"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/openfga"
)

// Room is how much of something there is in a model.
type Room struct{ Types, Bytes int }

// minBytes is what an action on a type takes in a model at the very least.
const minBytes = 16

// maxBytes bounds a model of which nothing is known.
const maxBytes = 1 << 20

// overfull finds that a policy with changes has no room in the Store's model. What is live stays, however little there is,
// and so does whoever takes something out.
func (s *selection) overfull(p *policy.Policy, changes map[int]bool) policy.Diagnostics {
	if s.room == nil || len(changes) == 0 {
		return nil
	}
	has := s.size(p)
	if has.Types <= s.room.Types && has.Bytes <= s.room.Bytes {
		return nil
	}
	var live Room
	if p, _ := s.try(nil); p != nil && !s.brings(changes) {
		live = s.size(p)
	}
	var found policy.Collector
	if has.Types > max(s.room.Types, live.Types) {
		found.Add(policy.Place{}, policy.CodeOpenFGATypes,
			fmt.Sprintf("the documents of the Store have %d types, and its model has room for %d beside its other modules", has.Types, s.room.Types),
			"remove types, or raise the limit here and in OpenFGA")
	}
	if has.Bytes > max(s.room.Bytes, live.Bytes) {
		found.Add(policy.Place{}, policy.CodeOpenFGASize,
			fmt.Sprintf("the documents of the Store have %d bytes, and its model has room for %d beside its other modules", has.Bytes, s.room.Bytes),
			"bind fewer actions or shorten names, or raise the limit here and in OpenFGA")
	}
	return found.Diagnostics()
}

// brings reports whether there are documents among the changes of which nothing is live.
func (s *selection) brings(changes map[int]bool) bool {
	for i := range changes {
		if s.documents[i].Live == nil {
			return true
		}
	}
	return false
}

// size is what a policy adds to the Store's model.
func (s *selection) size(p *policy.Policy) Room {
	r := Room{Bytes: openfga.Size(p, unlimited())}
	for _, t := range p.Types {
		if !s.defined[t.Name] {
			r.Types++
		}
	}
	return r
}

// vast finds, before anything is made of them, that documents with changes could not fit whatever their names are: a few
// lines that bind many actions to large unions are a model of hundreds of megabytes.
func (s *selection) vast(changes map[int]bool) policy.Diagnostics {
	if len(changes) == 0 {
		return nil
	}
	room := maxBytes
	if s.room != nil {
		room = max(0, s.room.Bytes)
	}
	has := s.actions(changes)
	if has*minBytes <= room || has <= s.actions(nil) && !s.brings(changes) {
		return nil
	}
	var found policy.Collector
	found.Add(policy.Place{}, policy.CodeOpenFGASize,
		fmt.Sprintf("the documents of the Store bind %d actions to types, and its model has room for %d bytes beside its other modules", has, room),
		"bind fewer actions to large unions")
	return found.Diagnostics()
}

// actions is how many actions the documents with some of the changes bind to types.
func (s *selection) actions(changes map[int]bool) int {
	members, all := map[string]int{}, 0
	for i := range s.documents {
		if text := s.text(i, changes); text != nil {
			for _, u := range text.Unions {
				members[u.Name] += len(u.ResourceTypes)
			}
		}
	}
	for i := range s.documents {
		if text := s.text(i, changes); text != nil {
			for _, b := range text.ActionBindings {
				all += max(1, members[b.TypeName])
			}
		}
	}
	return all
}
