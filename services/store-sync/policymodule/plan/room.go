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

// Room is an amount of space in a model.
type Room struct{ Types, Bytes int }

// Beside sets the definitions of other modules from the last merge of the Store's modules, and the room that they
// leave. A failed merge sets neither.
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

// minBytes bounds the size of one action on one type in a model from below.
const minBytes = 16

// maxBytes bounds the size of the documents if the room is unknown.
const maxBytes = 1 << 20

// overfullFindings returns findings if a policy with changes does not fit into the Store's model. Live texts stay even without
// room. Changes that do not increase the size of the live policy pass too, unless a document without a live text is
// among them.
func (s *selection) overfullFindings(p *policy.Policy, changes map[int]bool) policy.Diagnostics {
	if s.room == nil || len(changes) == 0 {
		return nil
	}
	has := s.roomFor(p)
	if has.Types <= s.room.Types && has.Bytes <= s.room.Bytes {
		return nil
	}
	var live Room
	if t, _ := s.tryChanges(nil); t.policy != nil && !s.hasNewDocument(changes) {
		live = s.roomFor(t.policy)
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

// hasNewDocument reports whether a document without a live text is among the changes.
func (s *selection) hasNewDocument(changes map[int]bool) bool {
	for i := range changes {
		if s.documents[i].Live == nil {
			return true
		}
	}
	return false
}

// roomFor returns the space that a policy adds to the Store's model.
func (s *selection) roomFor(p *policy.Policy) Room {
	r := Room{Bytes: openfga.Size(p, unlimitedOptions())}
	for _, t := range p.Types {
		if !s.defined[t.Name] {
			r.Types++
		}
	}
	return r
}

// vastFindings returns findings if changed documents cannot fit, however short their names are. It runs before a model is made:
// a few lines that bind many actions to large unions can become hundreds of megabytes.
func (s *selection) vastFindings(texts []*iaplv1alpha1.Policy, changes map[int]bool) policy.Diagnostics {
	if len(changes) == 0 {
		return nil
	}
	room := maxBytes
	if s.room != nil {
		room = max(0, s.room.Bytes)
	}
	has := countActions(texts)
	if has*minBytes <= room || has <= countActions(s.startingTexts(nil)) && !s.hasNewDocument(changes) {
		return nil
	}
	var found policy.Collector
	found.Add(policy.Place{}, policy.CodeOpenFGASize,
		fmt.Sprintf("the documents of the Store bind %d actions to types, and its model has room for %d bytes beside its other modules", has, room),
		"bind fewer actions to large unions")
	return found.Diagnostics()
}

// countActions returns the number of bindings of actions to types in texts, with unions counted by their members.
func countActions(texts []*iaplv1alpha1.Policy) int {
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
