package plan

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Room is how much of something there is in a model.
type Room struct{ Types, Bytes int }

// Beside notes what is live beside the documents, by the last merge of the Store's modules, and how much room that leaves. A merge
// that failed tells nothing.
func (in *Input) Beside(merged model.Result, limits model.Limits) {
	in.Defined, in.Room = map[string]bool{}, nil
	if merged.Model == nil {
		return
	}
	others := merged.Without(model.Policy)
	for _, d := range model.Definitions(others) {
		switch {
		case d.Relation != "":
			in.Defined[d.Type+"#"+d.Relation] = true
		case d.Type != "":
			in.Defined[d.Type] = true
		}
	}
	limits = limits.OrDefault()
	in.Room = &Room{Types: limits.Types - len(others.GetTypeDefinitions()), Bytes: limits.Bytes - proto.Size(others)}
}

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
	if t, _ := s.try(nil); t.policy != nil && !s.brings(changes) {
		live = s.size(t.policy)
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
func (s *selection) vast(texts []*iaplv1alpha1.Policy, changes map[int]bool) policy.Diagnostics {
	if len(changes) == 0 {
		return nil
	}
	room := maxBytes
	if s.room != nil {
		room = max(0, s.room.Bytes)
	}
	has := actions(texts)
	if has*minBytes <= room || has <= actions(s.startingTexts(nil)) && !s.brings(changes) {
		return nil
	}
	var found policy.Collector
	found.Add(policy.Place{}, policy.CodeOpenFGASize,
		fmt.Sprintf("the documents of the Store bind %d actions to types, and its model has room for %d bytes beside its other modules", has, room),
		"bind fewer actions to large unions")
	return found.Diagnostics()
}

// actions returns how many actions texts bind to types.
func actions(texts []*iaplv1alpha1.Policy) int {
	members, all := map[string]int{}, 0
	texts = slices.DeleteFunc(slices.Clone(texts), func(text *iaplv1alpha1.Policy) bool { return text == nil })
	for _, text := range texts {
		for _, u := range text.Unions {
			members[u.Name] += len(u.ResourceTypes)
		}
	}
	for _, text := range texts {
		for _, b := range text.ActionBindings {
			all += max(1, members[b.TypeName])
		}
	}
	return all
}
