// Package archtest checks architecture rules over the sources of all services that no linter checks: layers, names,
// comments, texts and sizes.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.." // services
	prefix = "github.com/entail-dev/entail/services/"
)

// At a call, a reader must see whose method is called. So a type may embed data, but not a collaborator only for its
// methods.
func TestStructsDoNotEmbedCollaborators(t *testing.T) {
	for _, e := range embeddings(t, root) {
		t.Errorf("%s: make it a named field", e)
	}
}

// exemptFolders returns directories that contain no part of a service: the library of the policy language, test
// environments, and the example of this test.
func exemptFolders() []string { return []string{"policy", "testenv", "testdata"} }

// embedding is an embedded field that lends methods.
type embedding struct {
	dir, in, field string
	at             token.Position
}

func (e embedding) String() string { return fmt.Sprintf("%s: %s embeds %s", e.at, e.in, e.field) }

// structType holds the relevant parts of a struct type.
type structType struct {
	name    string
	fields  *ast.FieldList
	imports map[string]string
	private bool
	methods bool
}

// embeddings finds embedded pointers, and embedded structs that have methods and private fields.
func embeddings(t *testing.T, root string) []embedding {
	t.Helper()
	fset, types := token.NewFileSet(), map[string]map[string]*structType{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains(exemptFolders(), d.Name()) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if types[dir] == nil {
			types[dir] = map[string]*structType{}
		}
		readFile(parsed, types[dir])
		return err
	})
	if err != nil || len(types) == 0 {
		t.Fatalf("%d packages: %v", len(types), err)
	}
	var found []embedding
	for dir, all := range types {
		for _, s := range all {
			found = append(found, s.embeddings(fset, dir, types)...)
		}
	}
	return found
}

func readFile(file *ast.File, types map[string]*structType) {
	imports := map[string]string{}
	for _, i := range file.Imports {
		name := path.Base(strings.Trim(i.Path.Value, `"`))
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = strings.Trim(i.Path.Value, `"`)
	}
	of := func(name string) *structType {
		if types[name] == nil {
			types[name] = &structType{name: name}
		}
		return types[name]
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				if name, ok := baseTypeName(d.Recv.List[0].Type).(*ast.Ident); ok {
					of(name.Name).methods = true
				}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					of(typ.Name.Name).define(typ.Type, imports)
				}
			}
		}
	}
}

func (s *structType) define(typ ast.Expr, imports map[string]string) {
	st, ok := typ.(*ast.StructType)
	if !ok {
		return
	}
	s.fields, s.imports = st.Fields, imports
	for _, f := range st.Fields.List {
		for _, name := range f.Names {
			s.private = s.private || !name.IsExported()
		}
	}
}

// baseTypeName returns a type without its pointer and its type arguments.
func baseTypeName(typ ast.Expr) ast.Expr {
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		default:
			return typ
		}
	}
}

func (s *structType) embeddings(fset *token.FileSet, dir string, types map[string]map[string]*structType) []embedding {
	if s.fields == nil {
		return nil
	}
	var found []embedding
	for _, f := range s.fields.List {
		if len(f.Names) > 0 {
			continue
		}
		_, pointer := f.Type.(*ast.StarExpr)
		where, name := dir, ""
		switch typ := baseTypeName(f.Type).(type) {
		case *ast.Ident:
			name = typ.Name
		case *ast.SelectorExpr:
			name = typ.Sel.Name
			if of, ok := typ.X.(*ast.Ident); ok {
				where = strings.TrimPrefix(s.imports[of.Name], prefix)
			}
		}
		of := types[where][name]
		if pointer || of != nil && of.methods && of.private {
			found = append(found, embedding{dir, s.name, name, fset.Position(f.Pos())})
		}
	}
	return found
}

func TestEmbeddingCheckAllowsData(t *testing.T) {
	var got []string
	for _, e := range embeddings(t, "testdata/services") {
		got = append(got, e.in)
	}
	want := map[string]bool{"Pointer": true, "Helper": true, "Elsewhere": true, "Generic": true}
	for _, in := range got {
		if !want[in] {
			t.Errorf("%s embeds data", in)
		}
		delete(want, in)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}
