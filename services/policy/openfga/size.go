package openfga

import (
	"math/bits"

	"github.com/entail-dev/entail/services/policy"
)

// idSize is the size of the model ID, which the server adds before it measures: a tag, a length and a ULID.
const idSize = 28

// Size returns the size in bytes by which OpenFGA measures the model of a policy in one piece. MaxBytes bounds this
// size.
func Size(p *policy.Policy, o Options) int { return newModel(p, o).size(false) }

// size returns the size of the model in protobuf. Each field has a tag of one byte, a length, and its content. A map
// has one field for each entry, with two fields in it.
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

// field returns the size of a field with content of the given size. text returns 0 for an empty text, which is left
// out.
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

// origin returns the size of the names of a module and of its file.
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
