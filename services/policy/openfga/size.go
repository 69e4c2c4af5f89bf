package openfga

import (
	"math/bits"

	"github.com/entail-dev/entail/services/policy"
)

// modelIDSize is the size of the model ID, which the server adds before it measures: a tag, a length and a ULID.
const modelIDSize = 28

// ModelSize returns the size in bytes by which OpenFGA measures the model of a policy in one piece. MaxBytes bounds this
// size.
func ModelSize(p *policy.Policy, o Options) int { return newPolicyModel(p, o).modelSize(false) }

// modelSize returns the size of the model in protobuf. Each field has a tag of one byte, a length, and its content. A map
// has one field for each entry, with two fields in it.
func (m *policyModel) modelSize(modular bool) int {
	s := modelSizer{options: m.policy.Options}
	if modular {
		s.modules = m.moduleNames()
	}
	size := modelIDSize + textSize(m.options.SchemaVersion)
	for i, t := range m.policy.Types {
		size += fieldSize(s.typeSize(t, m.definitions[i]))
	}
	return size
}

type modelSizer struct {
	options policy.Options
	// modules is nil for a model in one piece.
	modules map[*policy.DocumentSource]string
}

// fieldSize returns the size of a field with content of the given size.
func fieldSize(size int) int { return 1 + (bits.Len(uint(size)|1)+6)/7 + size }

// textSize returns the size of a field with a text. It returns 0 for an empty text, which has no field.
func textSize(s string) int {
	if s == "" {
		return 0
	}
	return fieldSize(len(s))
}

func (s modelSizer) typeSize(t *policy.Type, all []relationDefinition) int {
	relations, metadata := 0, s.originSize(t.Source)
	for _, d := range all {
		relations += fieldSize(fieldSize(len(d.name)) + fieldSize(s.rewriteSize(d)))
		about := s.directlyRelatedTypesSize(d)
		if d.relation == nil && s.modules[d.sourceDocument()] != s.modules[t.Source] {
			about += s.originSize(d.sourceDocument())
		}
		metadata += fieldSize(fieldSize(len(d.name)) + fieldSize(about))
	}
	if metadata > 0 {
		metadata = fieldSize(metadata)
	}
	return textSize(t.Name) + relations + metadata
}

// originSize returns the size of the names of a module and of its file.
func (s modelSizer) originSize(source *policy.DocumentSource) int {
	if s.modules == nil {
		return 0
	}
	name := s.modules[source]
	return textSize(name) + fieldSize(textSize(moduleFileName(name)))
}

func (s modelSizer) directlyRelatedTypesSize(d relationDefinition) int {
	size := 0
	switch {
	case d.relation != nil:
		for _, target := range d.relation.Targets {
			size += fieldSize(textSize(target.Name))
		}
	case d.role:
		size = fieldSize(textSize(s.options.RoleType) + textSize(s.options.RoleRelation))
	}
	return size
}

func (s modelSizer) rewriteSize(d relationDefinition) int {
	if d.relation != nil || d.role {
		return fieldSize(0)
	}
	b, size := d.bound, 0
	several := len(b.Steps) > 1 || b.RoleBinding && len(b.Steps) > 0
	add := func(child int) {
		if several {
			child = fieldSize(child)
		}
		size += child
	}
	if b.RoleBinding {
		add(fieldSize(fieldSize(len(b.Action) + len(s.options.RoleSuffix))))
	}
	for _, step := range b.Steps {
		add(fieldSize(fieldSize(textSize(step.Relation)) + fieldSize(textSize(step.Action))))
	}
	if several {
		size = fieldSize(size)
	}
	return size
}
