package openfga

import (
	"math/bits"

	"github.com/entail-dev/entail/services/policy"
)

// idSize is what the id takes that the server gives to the model before it measures: a tag, a length and a ULID.
const idSize = 28

// Size is how many bytes OpenFGA finds that the model of a policy has, in one piece: what MaxBytes bounds.
func Size(p *policy.Policy, o Options) int { return newModel(p, o).size(false) }

// size returns how many bytes the model has in protobuf, which is what OpenFGA limits. Every field is a tag
// of one byte, a length and as many bytes; a map is a field with two for each entry.
func (m *model) size(modular bool) int {
	s := sizer{options: m.policy.Options}
	if modular {
		s.modules = m.moduleNames()
	}
	size := idSize + text(m.options.SchemaVersion)
	for i, t := range m.policy.Types {
		size += field(s.typ(t, m.definitions[i]))
	}
	return size
}

type sizer struct {
	options policy.Options
	// modules is nil for a model in one piece.
	modules map[*policy.Source]string
}

// field is the size of a field whose content has that size; text is that of one that may be left out.
func field(size int) int { return 1 + (bits.Len(uint(size)|1)+6)/7 + size }

func text(s string) int {
	if s == "" {
		return 0
	}
	return field(len(s))
}

func (s sizer) typ(t *policy.Type, all []definition) int {
	relations, metadata := 0, s.origin(t.Source)
	for _, d := range all {
		relations += field(field(len(d.name)) + field(s.rewrite(d)))
		about := s.targets(d)
		if d.relation == nil && s.modules[d.source()] != s.modules[t.Source] {
			about += s.origin(d.source())
		}
		metadata += field(field(len(d.name)) + field(about))
	}
	if metadata > 0 {
		metadata = field(metadata)
	}
	return text(t.Name) + relations + metadata
}

// origin is the size of the names of a module and its file.
func (s sizer) origin(source *policy.Source) int {
	if s.modules == nil {
		return 0
	}
	name := s.modules[source]
	return text(name) + field(text(fileOf(name)))
}

func (s sizer) targets(d definition) int {
	size := 0
	switch {
	case d.relation != nil:
		for _, target := range d.relation.Targets {
			size += field(text(target.Name))
		}
	case d.role:
		size = field(text(s.options.RoleType) + text(s.options.RoleRelation))
	}
	return size
}

func (s sizer) rewrite(d definition) int {
	if d.relation != nil || d.role {
		return field(0)
	}
	b, size := d.bound, 0
	several := len(b.Steps) > 1 || b.RoleBinding && len(b.Steps) > 0
	add := func(child int) {
		if several {
			child = field(child)
		}
		size += child
	}
	if b.RoleBinding {
		add(field(field(len(b.Action) + len(s.options.RoleSuffix))))
	}
	for _, step := range b.Steps {
		add(field(field(text(step.Relation)) + field(text(step.Action))))
	}
	if several {
		size = field(size)
	}
	return size
}
