package reference_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// metric describes a metric found in the code.
type metric struct {
	help string
	// by holds the directories below services that create the metric.
	by map[string]bool
}

// metricsPage returns a page with all metrics of the services.
func metricsPage(root string) (string, error) {
	found := map[string]*metric{}
	services := filepath.Join(root, "services")
	err := filepath.WalkDir(services, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(services, filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			if name, help, ok := metricOf(n); ok {
				if found[name] == nil {
					found[name] = &metric{help: help, by: map[string]bool{}}
				}
				found[name].by[filepath.ToSlash(dir)] = true
			}
			return true
		})
		return err
	})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("# Metrics\n\nEvery service serves these metrics at `/metrics`, together with the metrics of Go and of the process. " +
		"The [runbooks](../operate/runbooks.md) describe the alerts that use them.\n\n")
	out.WriteString("| metric | meaning | package |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := found[name]
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, strings.TrimSuffix(m.help, "."), strings.Join(slices.Sorted(maps.Keys(m.by)), ", "))
	}
	return out.String(), nil
}

// metricOf reports whether a node of the syntax tree defines one of Entail's metrics. It recognizes options with Name
// and Help, and a call whose first two arguments are name and help.
func metricOf(n ast.Node) (name, help string, ok bool) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		for _, element := range n.Elts {
			if pair, isPair := element.(*ast.KeyValueExpr); isPair {
				switch key, _ := pair.Key.(*ast.Ident); {
				case key == nil:
				case key.Name == "Name":
					name = stringLiteral(pair.Value)
				case key.Name == "Help":
					help = stringLiteral(pair.Value)
				}
			}
		}
	case *ast.CallExpr:
		if len(n.Args) >= 2 {
			name, help = stringLiteral(n.Args[0]), stringLiteral(n.Args[1])
		}
	}
	return name, help, (strings.HasPrefix(name, "entail_") || strings.HasPrefix(name, "authz_")) && help != ""
}

// stringLiteral returns the value of a string literal, or "" for any other expression.
func stringLiteral(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil {
			return text
		}
	}
	return ""
}
