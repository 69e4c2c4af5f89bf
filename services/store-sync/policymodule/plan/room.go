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

// ModelBudget is an amount of space in a model.
type ModelBudget struct{ Types, Bytes int }

// SetOtherModules sets the definitions of other modules from the last merge of the Store's modules, and the room that they
// leave. A failed merge sets neither.
func (in *Input) SetOtherModules(merged model.MergeResult, limits model.Limits) {
	in.Defined, in.Room = map[string]bool{}, nil
	if merged.Model == nil {
		return
	}
	others := merged.ModelWithoutKind(model.Policy)
	for _, d := range model.ListDefinitions(others) {
		switch {
		case d.Relation != "":
			in.Defined[d.Type+"#"+d.Relation] = true
		case d.Type != "":
			in.Defined[d.Type] = true
		}
	}
	limits = limits.OrDefault()
	in.Room = &ModelBudget{Types: limits.Types - len(others.GetTypeDefinitions()), Bytes: limits.Bytes - proto.Size(others)}
}

// minBytes bounds the size of one action on one type in a model from below.
const minBytes = 16

// maxBytes bounds the size of the documents if the room is unknown.
const maxBytes = 1 << 20

// overBudgetFindings returns findings if a policy with changes does not fit into the Store's model. Live texts stay even without
// room. Changes that do not increase the size of the live policy pass too, unless a document without a live text is
// among them.
func (s *documentSelection) overBudgetFindings(p *policy.Policy, changes map[int]bool) policy.Diagnostics {
	if s.room == nil || len(changes) == 0 {
		return nil
	}
	has := s.modelSizeOf(p)
	if has.Types <= s.room.Types && has.Bytes <= s.room.Bytes {
		return nil
	}
	var live ModelBudget
	if t, _ := s.tryChanges(nil); t.policy != nil && !s.hasNewDocument(changes) {
		live = s.modelSizeOf(t.policy)
	}
	var found policy.DiagnosticCollector
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
func (s *documentSelection) hasNewDocument(changes map[int]bool) bool {
	for i := range changes {
		if s.documents[i].Live == nil {
			return true
		}
	}
	return false
}

// modelSizeOf returns the space that a policy adds to the Store's model.
func (s *documentSelection) modelSizeOf(p *policy.Policy) ModelBudget {
	r := ModelBudget{Bytes: openfga.ModelSize(p, unlimitedOptions())}
	for _, t := range p.Types {
		if !s.defined[t.Name] {
			r.Types++
		}
	}
	return r
}

// tooManyBindingsFindings returns findings if changed documents cannot fit, however short their names are. It runs before a model is made:
// a few lines that bind many actions to large unions can become hundreds of megabytes.
func (s *documentSelection) tooManyBindingsFindings(texts []*iaplv1alpha1.Policy, changes map[int]bool) policy.Diagnostics {
	if len(changes) == 0 {
		return nil
	}
	room := maxBytes
	if s.room != nil {
		room = max(0, s.room.Bytes)
	}
	has := countBoundActions(texts)
	if has*minBytes <= room || has <= countBoundActions(s.textsWithChanges(nil)) && !s.hasNewDocument(changes) {
		return nil
	}
	var found policy.DiagnosticCollector
	found.Add(policy.Place{}, policy.CodeOpenFGASize,
		fmt.Sprintf("the documents of the Store bind %d actions to types, and its model has room for %d bytes beside its other modules", has, room),
		"bind fewer actions to large unions")
	return found.Diagnostics()
}

// countBoundActions returns the number of bindings of actions to types in texts, with unions counted by their members.
func countBoundActions(texts []*iaplv1alpha1.Policy) int {
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
