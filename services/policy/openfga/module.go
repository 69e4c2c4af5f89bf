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
	Sources []*policy.DocumentSource
}

// CompileModules compiles a policy to a modular model, sorted by name. The result is nil if the findings have errors.
//
// The module of an owner contains the declarations and bindings of its documents. A document without a usable owner
// gets a module with the name of its first declaration, so that the split into files makes no difference. A document
// with only unions and actions has no module, because a model has neither.
func CompileModules(p *policy.Policy, o Options) ([]Module, policy.Diagnostics) {
	m := newPolicyModel(p, o)
	found := m.checkModel(o, true)
	if found.HasErrors() {
		return nil, found
	}
	var modules []Module
	for _, part := range m.splitIntoModules() {
		content, _ := m.writeUnlessErrors(nil, func(w modelWriter) {
			w.out.WriteText("module ", part.name, "\n")
			for _, keyword := range []string{"type", "extend type"} {
				for _, f := range part.fragments {
					if f.keyword() == keyword {
						w.writeType(keyword, f.of, f.definitions)
					}
				}
			}
		})
		modules = append(modules, Module{Name: part.name, File: moduleFileName(part.name), Content: content, Sources: part.sources})
	}
	return modules, found
}

// ModFile returns the file fga.mod of modules.
func ModFile(modules []Module) []byte {
	var b strings.Builder
	b.WriteString("schema: '1.2'\ncontents:\n")
	for _, m := range modules {
		b.WriteString("  - " + m.File + "\n")
	}
	return []byte(b.String())
}

func moduleFileName(module string) string { return module + ".fga" }

// modulePart is the content of one module.
type modulePart struct {
	name      string
	sources   []*policy.DocumentSource
	fragments []*typeFragment
}

// typeFragment is the part of a type in one module.
type typeFragment struct {
	of          *policy.Type
	own         bool
	definitions []relationDefinition
}

func (f *typeFragment) keyword() string {
	if f.own {
		return "type"
	}
	return "extend type"
}

// splitIntoModules distributes types and their definitions to modules.
func (m *policyModel) splitIntoModules() []*modulePart {
	names := m.moduleNames()
	parts := map[string]*modulePart{}
	for i, t := range m.policy.Types {
		fragments := map[string]*typeFragment{}
		add := func(source *policy.DocumentSource) *typeFragment {
			name := names[source]
			if fragments[name] == nil {
				fragments[name] = &typeFragment{of: t}
				if parts[name] == nil {
					parts[name] = &modulePart{name: name}
				}
				parts[name].fragments = append(parts[name].fragments, fragments[name])
			}
			return fragments[name]
		}
		if !t.IsSynthesised() || !slices.Contains(m.options.ExternalTypes, t.Name) {
			add(t.Source).own = true
		}
		for _, d := range m.definitions[i] {
			f := add(d.sourceDocument())
			f.definitions = append(f.definitions, d)
		}
	}
	for _, source := range m.policy.Sources {
		if part := parts[names[source]]; part != nil {
			part.sources = append(part.sources, source)
		}
	}
	return slices.SortedFunc(maps.Values(parts), func(a, b *modulePart) int { return strings.Compare(a.name, b.name) })
}

// moduleNames returns the module of each document, and of undeclared types by the key nil.
func (m *policyModel) moduleNames() map[*policy.DocumentSource]string {
	names := map[*policy.DocumentSource]string{nil: m.options.CoreModule}
	for _, source := range m.policy.Sources {
		if isModuleName(source.Owner) {
			names[source] = source.Owner
		}
	}
	// Each type and binding is declared once, so the first one of a document can name it. Types come first.
	for _, t := range m.policy.Types {
		if names[t.Source] == "" {
			names[t.Source] = shortenName(t.Name)
		}
	}
	for _, t := range m.policy.Types {
		for _, b := range t.Bindings {
			if names[b.Source] == "" {
				names[b.Source] = shortenName(t.Name + "-" + b.Action)
			}
		}
	}
	return names
}

// shortenName cuts a name to the limit. A checksum keeps different names different.
func shortenName(name string) string {
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
	return s != "" && len(s) <= maxModuleName && !isReservedWord(s)
}
