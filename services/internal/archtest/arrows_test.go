package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The files of a service form layers, from the wiring at the top downwards. Each file uses only files below it.
func TestServiceFilesUseOnlyFilesBelow(t *testing.T) {
	var got []string
	for _, dir := range withReconcile(t, root) {
		got = append(got, arrowsUp(t, dir)...)
	}
	if len(got) > 0 {
		t.Errorf("got %q, want none", got)
	}
}

func TestArrowCheckFindsUpwardUse(t *testing.T) {
	want := []string{
		"testdata/rooms/apply.go uses listTags of tags.go uses pass of reconcile.go",
		"testdata/rooms/apply.go uses pass of reconcile.go",
		"testdata/rooms/state.go, callback onChange, uses wire of reconcile.go",
		"testdata/rooms/status.go uses key of reconcile.go",
	}
	if got := arrowsUp(t, "testdata/rooms"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A service may have several reconcilers, each in its own directory. They share code only through a third package.
func TestServicesDoNotImportEachOther(t *testing.T) {
	services := withReconcile(t, root)
	for _, door := range services {
		for _, other := range services {
			sameService := filepath.Dir(door) == filepath.Dir(other) && slices.Contains(services, filepath.Dir(door))
			if sameService && slices.Contains(imports(t, door), prefix+strings.TrimPrefix(other, root+"/")) {
				t.Errorf("%s imports %s", door, other)
			}
		}
	}
}

// fileHeight returns the layer of a file: 0 for the wiring, higher numbers below it, and -1 for a file without a layer.
func fileHeight(file string) int {
	switch filepath.Base(file) {
	case "reconcile.go", "server.go":
		return 1
	case "apply.go", "status.go":
		return 2
	case "state.go":
		return 3
	case "config.go":
		return 4
	case strings.ReplaceAll(filepath.Base(filepath.Dir(file)), "-", "") + ".go":
		return 0
	}
	return -1
}

// arrowsUp returns the uses in files of a package of declarations in a higher file. A declaration in a file without a
// layer counts as part of the files that use it. So if apply.go calls a function of tags.go that calls a function of
// reconcile.go, apply.go uses reconcile.go.
func arrowsUp(t *testing.T, dir string) []string {
	t.Helper()
	p := usesOf(t, dir)
	var arrows []string
	for declared := range p.uses {
		from := p.file(declared)
		height := fileHeight(from)
		if height < 0 {
			continue
		}
		visited := map[types.Object]bool{}
		var visit func(o types.Object, path string)
		visit = func(o types.Object, path string) {
			for _, used := range p.uses[o] {
				if visited[used] {
					continue
				}
				visited[used] = true
				to := p.file(used)
				step := fmt.Sprintf("%s uses %s of %s", path, used.Name(), filepath.Base(to))
				switch high := fileHeight(to); {
				case high < 0:
					visit(used, step)
				case high < height:
					arrows = append(arrows, step)
				}
			}
		}
		if v, ok := declared.(*types.Var); ok && v.IsField() {
			from += ", callback " + v.Name() + ","
		}
		visit(declared, from)
	}
	slices.Sort(arrows)
	return slices.Compact(arrows)
}

// declarations holds, for each declaration of a package, the other declarations of the package that it uses.
type declarations struct {
	fset *token.FileSet
	info *types.Info
	pkg  *types.Package
	uses map[types.Object][]types.Object
}

func (d declarations) file(o types.Object) string { return d.fset.Position(o.Pos()).Filename }

// usesOf returns the uses of each function, method, type and variable of a package. A field with a function type that
// is assigned outside of a literal is a callback: it uses the declaration that assigns it.
func usesOf(t *testing.T, dir string) declarations {
	t.Helper()
	d := declarations{fset: token.NewFileSet(), uses: map[types.Object][]types.Object{}}
	d.info = &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	// The check needs no declaration of another package, so the importer finds none.
	elsewhere := importer.ForCompiler(d.fset, "gc", func(string) (io.ReadCloser, error) { return nil, os.ErrNotExist })
	cfg := types.Config{Importer: elsewhere, Error: func(error) {}}
	files := sources(t, d.fset, dir)
	d.pkg, _ = cfg.Check(dir, d.fset, files, d.info)
	for _, file := range files {
		for _, declared := range file.Decls {
			switch declared := declared.(type) {
			case *ast.FuncDecl:
				d.addUses(d.info.Defs[declared.Name], declared)
			case *ast.GenDecl:
				for _, spec := range declared.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						d.addUses(d.info.Defs[spec.Name], spec)
					case *ast.ValueSpec:
						d.addUses(d.info.Defs[spec.Names[0]], spec)
					}
				}
			}
		}
	}
	return d
}

// addUses adds the uses in the declaration of an object. A field uses only its type, unless it is a callback.
func (d declarations) addUses(of types.Object, declared ast.Node) {
	ast.Inspect(declared, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if field := callbackField(d.info, left); field != nil && field.Pkg() == d.pkg {
					d.uses[field.Origin()] = append(d.uses[field.Origin()], of)
				}
			}
		case *ast.Ident:
			switch used := d.info.Uses[n].(type) {
			case *types.Func:
				if used.Pkg() == d.pkg {
					d.uses[of] = append(d.uses[of], used.Origin())
				}
			case *types.TypeName, *types.Const:
				if used.Pkg() == d.pkg {
					d.uses[of] = append(d.uses[of], used)
				}
			case *types.Var:
				if _, call := used.Type().Underlying().(*types.Signature); used.Pkg() == d.pkg && (used.IsField() && call || used.Parent() == d.pkg.Scope()) {
					d.uses[of] = append(d.uses[of], used.Origin())
				}
			}
		}
		return true
	})
}

// callbackField returns the field of a function type that an expression selects, or nil.
func callbackField(info *types.Info, x ast.Expr) *types.Var {
	selector, ok := x.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	field, ok := info.Uses[selector.Sel].(*types.Var)
	if !ok || !field.IsField() {
		return nil
	}
	if _, ok := field.Type().Underlying().(*types.Signature); !ok {
		return nil
	}
	return field
}

// sources returns the files of a package, except its tests.
func sources(t *testing.T, fset *token.FileSet, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func imports(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	for _, file := range sources(t, token.NewFileSet(), dir) {
		for _, i := range file.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
	}
	return paths
}

// withReconcile returns the directories below root that contain a reconciler.
func withReconcile(t *testing.T, root string) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains(exemptFolders(), d.Name()) {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == "reconcile.go" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d folders: %v", len(dirs), err)
	}
	return dirs
}
