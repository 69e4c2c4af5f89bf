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

// Whoever reads a service from its wiring downwards meets everything below the room that uses it.
func TestNoArrowPointsUpInThePictureOfAService(t *testing.T) {
	for _, dir := range withReconcile(t, root) {
		for _, arrow := range arrowsUp(t, dir) {
			t.Error(arrow)
		}
	}
}

func TestArrowsThatPointUpAreFound(t *testing.T) {
	got := arrowsUp(t, "testdata/rooms")
	if len(got) != 2 || !strings.HasSuffix(got[0], "apply.go uses pass of reconcile.go") || !strings.HasSuffix(got[1], "status.go uses key of reconcile.go") {
		t.Errorf("got %q", got)
	}
}

// What two doors have in common is in a room of its own.
func TestNoDoorLeadsToAnother(t *testing.T) {
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

// floor is where a room is in the picture of a service; 0 is the wiring.
func floor(file string) int {
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
	return -1 // It is none of the rooms.
}

// arrowsUp are the uses in a package of what a higher room of it declares.
func arrowsUp(t *testing.T, dir string) []string {
	t.Helper()
	fset := token.NewFileSet()
	// What other packages declare does not matter, and so neither does that they are not found.
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	elsewhere := importer.ForCompiler(fset, "gc", func(string) (io.ReadCloser, error) { return nil, os.ErrNotExist })
	cfg := types.Config{Importer: elsewhere, Error: func(error) {}}
	pkg, _ := cfg.Check(dir, fset, sources(t, fset, dir), info)
	var arrows []string
	for id, object := range info.Uses {
		if _, field := object.(*types.Var); field || object.Pkg() != pkg {
			continue // Whose field it is says the type.
		}
		from, to := fset.Position(id.Pos()).Filename, fset.Position(object.Pos()).Filename
		if high := floor(to); high >= 0 && high < floor(from) {
			arrows = append(arrows, fmt.Sprintf("%s uses %s of %s", from, object.Name(), filepath.Base(to)))
		}
	}
	slices.Sort(arrows)
	return slices.Compact(arrows)
}

// sources are the files of a package but for its tests.
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

// withReconcile are the folders below one in which something is reconciled: services, and their doors.
func withReconcile(t *testing.T, root string) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains(exempt(), d.Name()) {
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
