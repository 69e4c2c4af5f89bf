package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"google.golang.org/protobuf/proto"
)

// RenderDSL renders a model as one text in the OpenFGA DSL, with types and relations sorted by name. It returns an error for
// the few models that OpenFGA accepts as JSON but cannot express in its DSL.
func RenderDSL(m *openfgav1.AuthorizationModel) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("rendering model %s: the model is malformed: %v", m.GetId(), r)
		}
	}()
	plain := proto.CloneOf(m)
	slices.SortFunc(plain.GetTypeDefinitions(), func(a, b *openfgav1.TypeDefinition) int {
		return strings.Compare(a.GetType(), b.GetType())
	})
	for _, t := range plain.GetTypeDefinitions() { // the renderer would sort by module
		if t.GetMetadata() != nil {
			t.Metadata.Module = ""
		}
		for _, r := range t.GetMetadata().GetRelations() {
			r.Module, r.SourceInfo = "", nil
		}
	}
	for _, c := range plain.GetConditions() {
		c.Metadata = nil
	}
	text, err = transformer.TransformJSONProtoToDSL(plain)
	if err != nil {
		return "", fmt.Errorf("rendering model %s: %w", m.GetId(), err)
	}
	return text, nil
}

// ListDefinitions lists the definitions of a model, sorted: each type with its relations, and the conditions. The modules
// are those of the model's metadata.
func ListDefinitions(m *openfgav1.AuthorizationModel) []Definition {
	var all []Definition
	for _, t := range m.GetTypeDefinitions() {
		all = append(all, Definition{Type: t.GetType(), Module: t.GetMetadata().GetModule()})
		for relation := range t.GetRelations() {
			all = append(all, Definition{Type: t.GetType(), Relation: relation, Module: moduleOfRelation(t, relation)})
		}
	}
	for n, c := range m.GetConditions() {
		all = append(all, Definition{Condition: n, Module: c.GetMetadata().GetModule()})
	}
	slices.SortFunc(all, Definition.compareDefinition)
	return all
}

// ModelWithoutKind returns the model without the definitions of modules of a kind.
func (r MergeResult) ModelWithoutKind(kind OriginKind) *openfgav1.AuthorizationModel {
	gone := map[definitionName]bool{}
	for _, d := range r.Definitions {
		gone[definitionName{d.Type, d.Relation, d.Condition}] = d.Origin.Kind == kind
	}
	left := &openfgav1.AuthorizationModel{SchemaVersion: r.Model.GetSchemaVersion(), Conditions: maps.Clone(r.Model.GetConditions())}
	maps.DeleteFunc(left.GetConditions(), func(c string, _ *openfgav1.Condition) bool { return gone[definitionName{cond: c}] })
	for _, t := range r.Model.GetTypeDefinitions() {
		if gone[definitionName{typ: t.GetType()}] {
			continue
		}
		t = proto.CloneOf(t)
		maps.DeleteFunc(t.GetRelations(), func(rel string, _ *openfgav1.Userset) bool { return gone[definitionName{typ: t.GetType(), rel: rel}] })
		left.TypeDefinitions = append(left.TypeDefinitions, t)
	}
	return left
}

func (d Definition) compareDefinition(o Definition) int {
	return cmp.Or(cmp.Compare(d.Condition, o.Condition), cmp.Compare(d.Type, o.Type), cmp.Compare(d.Relation, o.Relation))
}

// moduleOfRelation returns the module of a relation: that of its metadata, else that of its type.
func moduleOfRelation(t *openfgav1.TypeDefinition, relation string) string {
	return cmp.Or(t.GetMetadata().GetRelations()[relation].GetModule(), t.GetMetadata().GetModule())
}
