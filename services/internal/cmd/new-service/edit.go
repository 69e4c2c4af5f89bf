package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
)

// edit changes the text of a file. It refuses one in which it does not find its place, or
// several such: then the file and this program do not fit together any more.
type edit func(data []byte) ([]byte, error)

// before puts text before the only line that matches a pattern.
func before(line, text string) edit { return within(`()`+line+`$`, text) }

// within puts text before the only group of the pattern of a line, which only one has.
func within(line, text string) edit {
	pattern := regexp.MustCompile(`(?m)^` + line)
	return func(data []byte) ([]byte, error) {
		found := pattern.FindAllSubmatchIndex(data, 2)
		if len(found) != 1 {
			return nil, fmt.Errorf("it has not one line %s: mend that, or the entry in services/internal/cmd/new-service", line)
		}
		return slices.Insert(bytes.Clone(data), found[0][2], []byte(text)...), nil
	}
}

// inOrder puts a line where it belongs among those that begin as it does.
func inOrder(beginning, line string) edit {
	pattern := regexp.MustCompile(`(?m)^` + beginning + `.*\n`)
	return func(data []byte) ([]byte, error) {
		found := pattern.FindAllIndex(data, -1)
		if len(found) == 0 {
			return nil, fmt.Errorf("it has no line %s: mend that, or the entry in services/internal/cmd/new-service", beginning)
		}
		place := found[len(found)-1][1]
		for _, at := range found {
			if string(data[at[0]:at[1]]) > line {
				place = at[0]
				break
			}
		}
		return slices.Insert(bytes.Clone(data), place, []byte(line)...), nil
	}
}

// element adds one to the literal of a type in a function.
func element(function, typ, text string) edit {
	return goEdit(func(src source) (int, string, error) {
		var all []*ast.CompositeLit
		ast.Inspect(src.function(function), func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok && lit.Type != nil && src.text(lit.Type) == typ {
				all = append(all, lit)
			}
			return true
		})
		if len(all) != 1 {
			return 0, "", fmt.Errorf("%d literals of %s in function %s, want one", len(all), typ, function)
		}
		switch lit := all[0]; {
		case src.line(lit.Lbrace) != src.line(lit.Rbrace):
			return src.offset(lit.Rbrace), text + ",\n", nil
		case len(lit.Elts) > 0:
			return src.offset(lit.Rbrace), ", " + text, nil
		default:
			return src.offset(lit.Rbrace), text, nil
		}
	})
}

// constant adds one to the group of another.
func constant(beside, text string) edit {
	return goEdit(func(src source) (int, string, error) {
		for _, d := range src.file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST || !group.Rparen.IsValid() {
				continue
			}
			for _, spec := range group.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && value.Names[0].Name == beside {
					return src.offset(group.Rparen), text + "\n", nil
				}
			}
		}
		return 0, "", fmt.Errorf("no group of constants has %s", beside)
	})
}

// source is a Go file with what it was parsed from.
type source struct {
	data []byte
	set  *token.FileSet
	file *ast.File
}

// goEdit inserts text at an offset, and formats.
func goEdit(place func(source) (offset int, text string, err error)) edit {
	return func(data []byte) ([]byte, error) {
		src := source{data: data, set: token.NewFileSet()}
		var err error
		if src.file, err = parser.ParseFile(src.set, "", data, parser.ParseComments); err != nil {
			return nil, err
		}
		offset, text, err := place(src)
		if err != nil {
			return nil, fmt.Errorf("%w: mend that, or the entry in services/internal/cmd/new-service", err)
		}
		return format.Source(slices.Insert(bytes.Clone(data), offset, []byte(text)...))
	}
}

func (s source) offset(p token.Pos) int { return s.set.Position(p).Offset }
func (s source) line(p token.Pos) int   { return s.set.Position(p).Line }

func (s source) text(n ast.Node) string { return string(s.data[s.offset(n.Pos()):s.offset(n.End())]) }

// function is the body of a function; without such a function it has nothing in it.
func (s source) function(name string) ast.Node {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name {
			return f.Body
		}
	}
	return &ast.BlockStmt{}
}
