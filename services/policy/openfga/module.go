package openfga

import (
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// maxModuleName is OpenFGA's limit, in characters.
const maxModuleName = 50

// Module is the part of a model that one owner provides.
type Module struct {
	Name string
	// File is the name of the module's file in the manifest.
	File    string
	Content []byte
	// Sources holds the documents of the module; it is empty for a module of undeclared types.
	Sources []*policy.Source
}

// Modules compiles a policy to a modular model, sorted by name. The result is nil if the findings have errors.
//
// The module of an owner contains the declarations and bindings of its documents. A document without a usable owner
// gets a module with the name of its first declaration, so that the split into files makes no difference. A document
// with only unions and actions has no module, because a model has neither.
func Modules(p *policy.Policy, o Options) ([]Module, policy.Diagnostics) {
	m := newModel(p, o)
	found := m.check(o, true)
	if found.HasErrors() {
		return nil, found
	}
	var modules []Module
	for _, part := range m.parts() {
		content, _ := m.write(nil, func(w writer) {
			w.out.Text("module ", part.name, "\n")
			for _, keyword := range []string{"type", "extend type"} {
				for _, f := range part.fragments {
					if f.keyword() == keyword {
						w.typ(keyword, f.of, f.definitions)
					}
				}
			}
		})
		modules = append(modules, Module{Name: part.name, File: fileOf(part.name), Content: content, Sources: part.sources})
	}
	return modules, found
}

// Manifest returns the file fga.mod of modules.
func Manifest(modules []Module) []byte {
	var b strings.Builder
	b.WriteString("schema: '1.2'\ncontents:\n")
	for _, m := range modules {
		b.WriteString("  - " + m.File + "\n")
	}
	return []byte(b.String())
}

func fileOf(module string) string { return module + ".fga" }

// part is the content of one module.
type part struct {
	name      string
	sources   []*policy.Source
	fragments []*fragment
}

// fragment is the part of a type in one module.
type fragment struct {
	of          *policy.Type
	own         bool
	definitions []definition
}

func (f *fragment) keyword() string {
	if f.own {
		return "type"
	}
	return "extend type"
}

// parts distributes types and their definitions to modules.
func (m *model) parts() []*part {
	names := m.moduleNames()
	parts := map[string]*part{}
	for i, t := range m.policy.Types {
		fragments := map[string]*fragment{}
		add := func(source *policy.Source) *fragment {
			name := names[source]
			if fragments[name] == nil {
				fragments[name] = &fragment{of: t}
				if parts[name] == nil {
					parts[name] = &part{name: name}
				}
				parts[name].fragments = append(parts[name].fragments, fragments[name])
			}
			return fragments[name]
		}
		if !t.Synthesised() || !slices.Contains(m.options.ExternalTypes, t.Name) {
			add(t.Source).own = true
		}
		for _, d := range m.definitions[i] {
			f := add(d.source())
			f.definitions = append(f.definitions, d)
		}
	}
	for _, source := range m.policy.Sources {
		if part := parts[names[source]]; part != nil {
			part.sources = append(part.sources, source)
		}
	}
	return slices.SortedFunc(maps.Values(parts), func(a, b *part) int { return strings.Compare(a.name, b.name) })
}

// moduleNames returns the module of each document, and of undeclared types by the key nil.
func (m *model) moduleNames() map[*policy.Source]string {
	names := map[*policy.Source]string{nil: m.options.CoreModule}
	for _, source := range m.policy.Sources {
		if isModuleName(source.Owner) {
			names[source] = source.Owner
		}
	}
	// Each type and binding is declared once, so the first one of a document can name it. Types come first.
	for _, t := range m.policy.Types {
		if names[t.Source] == "" {
			names[t.Source] = shorten(t.Name)
		}
	}
	for _, t := range m.policy.Types {
		for _, b := range t.Bindings {
			if names[b.Source] == "" {
				names[b.Source] = shorten(t.Name + "-" + b.Action)
			}
		}
	}
	return names
}

// shorten cuts a name to the limit. A checksum keeps different names different.
func shorten(name string) string {
	if len(name) <= maxModuleName {
		return name
	}
	end := fmt.Sprintf("-%08x", crc32.ChecksumIEEE([]byte(name)))
	return name[:maxModuleName-len(end)] + end
}

func isModuleName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxModuleName && !isWord(s)
}
