package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	lowerCaseName = regexp.MustCompile(`^([a-z]\w*) [a-z]`)
	testedName    = regexp.MustCompile(`\b(?i:if|unless|when|while|until) ([A-Za-z]\w*) (?:is (?:true|false|nil|set)\b|returns )`)
)

// plainWords lists the words that may stand where a name is expected.
func plainWords() []string {
	return []string{"nil", "or", "before", "it", "that", "this", "one", "nothing", "everything", "which", "each", "both", "neither", "another"}
}

// A sentence that starts with a lower-case word starts with an identifier. After a rename the comment must follow, or a
// reader searches for a name that no longer exists.
func TestCommentsNameOnlyWhatExists(t *testing.T) {
	for _, tree := range trees() {
		for _, file := range productFiles(t, filepath.Join(root, "..", tree)) {
			for _, unknown := range unknownNames(t, file) {
				t.Error(unknown)
			}
		}
	}
}

func TestUnknownNamesFindsRenamedIdentifiers(t *testing.T) {
	for comment, want := range map[string]int{
		"renewLease renews the lease. term is the present term.":      0,
		"renewLease renews the lease. turn is the present term.":      1,
		"claimTurn renews the lease.":                                 1,
		"renewLease renews the lease if force is true.":               0,
		"renewLease renews the lease. If always is true, it waits.":   1,
		"renewLease renews the lease. If it is set, nothing follows.": 0,
	} {
		text := "package x\n\n// " + comment + "\nfunc renewLease(term uint64, force bool) {}\n"
		if found := unknownNames(t, productFile{"x.go", text}); len(found) != want {
			t.Errorf("%s: got %q, want %d", comment, found, want)
		}
	}
}

// unknownNames returns the names in the comments of a file that the code beside the comment does not contain.
func unknownNames(t *testing.T, file productFile) (unknown []string) {
	t.Helper()
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file.path, file.text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]bool{} // A comment may refer to another function of the file.
	for _, declared := range parsed.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok {
			functions[comparableName(f.Name.Name)] = true
		}
	}
	for _, declared := range parsed.Decls {
		names, docs := identifiersOf(declared), docsOf(declared)
		for _, comment := range parsed.Comments {
			if isDoc := slices.Contains(docs, comment); isDoc || declared.Pos() <= comment.Pos() && comment.End() <= declared.End() {
				for _, name := range namesInComment(comment, isDoc) {
					if name := comparableName(name); !names[name] && !functions[name] {
						unknown = append(unknown, fmt.Sprintf("%s: %s is not in the code that the comment describes", positions.Position(comment.Pos()), name))
					}
				}
			}
		}
	}
	return unknown
}

// docsOf returns the comments that document a declaration or a part of it, such as a field.
func docsOf(declared ast.Decl) (docs []*ast.CommentGroup) {
	ast.Inspect(declared, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			docs = append(docs, d.Doc)
		case *ast.GenDecl:
			docs = append(docs, d.Doc)
		case *ast.ValueSpec:
			docs = append(docs, d.Doc)
		case *ast.TypeSpec:
			docs = append(docs, d.Doc)
		case *ast.Field:
			docs = append(docs, d.Doc)
		}
		return true
	})
	return docs
}

// identifiersOf returns the identifiers in a declaration, in the form of comparableName.
func identifiersOf(declared ast.Decl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(declared, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			names[comparableName(name.Name)] = true
		}
		return true
	})
	return names
}

// comparableName returns a name without capitals and underscores, because JSON names of fields differ only in these.
func comparableName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// namesInComment returns the words that must be identifiers: those that start a sentence in lower case, and those
// in "if x is true" or "while x returns". The first sentence of a comment within a function may be a fragment.
func namesInComment(comment *ast.CommentGroup, documents bool) (names []string) {
	var lines []string
	for _, line := range comment.List {
		lines = append(lines, strings.TrimPrefix(line.Text, "//"))
	}
	for i, sentence := range sentences(lines) {
		if found := lowerCaseName.FindStringSubmatch(sentence); found != nil && (i > 0 || documents) {
			names = append(names, found[1])
		}
		for _, found := range testedName.FindAllStringSubmatch(sentence, -1) {
			names = append(names, found[1])
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(plainWords(), name) })
}
