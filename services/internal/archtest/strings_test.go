package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestUserVisibleStringsEqualGoldenFile compares the strings of all services and of the command line with
// testdata/strings.txt. A commit that changes them changes this file, and lists them in its body. These literals count
// as strings for users, and a few others with them:
//   - every string literal with a letter and a space: messages of errors, logs, conditions and Events, help of flags
//     and metrics
//   - every name of a metric, which begins with entail_
//   - the name of a flag: the first literal in a call of a method such as StringVar, Duration or BoolP
//   - a reason: a literal after Reason, as a field, a variable, a constant or in a call of condition.New
//   - any other literal of one word in CamelCase
//
// Literals joined by + are one string, with … for each other part. Tests, generated files and testenv are omitted, and
// so are tags and import paths. The texts of the API are comments; deploy/crd contains them.
func TestUserVisibleStringsEqualGoldenFile(t *testing.T) {
	const file = "testdata/strings.txt"
	seen := map[string]bool{}
	for _, tree := range trees() {
		if strings.HasPrefix(tree, "deploy/") {
			continue
		}
		for _, file := range productFiles(t, filepath.Join(root, "..", tree)) {
			if strings.Contains(filepath.ToSlash(file.path), "/internal/testenv/") {
				continue
			}
			for _, s := range shownStrings(t, file) {
				seen[s] = true
			}
		}
	}
	got := strings.Join(slices.Sorted(maps.Keys(seen)), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(golden)) {
		want[strings.TrimSuffix(line, "\n")] = true
	}
	for _, s := range slices.Sorted(maps.Keys(seen)) {
		if !want[s] {
			t.Errorf("new: %s", s)
		}
		delete(want, s)
	}
	for _, s := range slices.Sorted(maps.Keys(want)) {
		t.Errorf("gone: %s", s)
	}
	if t.Failed() {
		t.Errorf("strings that users see have changed: go test ./internal/archtest -update, and list them in the body of the commit")
	}
}

var (
	flagDefinition = regexp.MustCompile(`^(?:String|Bool|Duration|U?[Ii]nt(?:64)?|Float64|StringSlice|StringArray|Text)(?:Var)?P?$|^(?:Func|Var|VarP)$`)
	sentenceLike   = regexp.MustCompile(`\pL.* | .*\pL`)
	reasonLike     = regexp.MustCompile(`^(?:[A-Z][a-z0-9]+){2,}$`)
)

// shownStrings returns the strings in a file that users see, quoted.
func shownStrings(t *testing.T, file productFile) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file.path, file.text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	add := func(s string) { found = append(found, strconv.Quote(s)) }
	skip := map[ast.Node]bool{} // tags, and parts of joined literals
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				skip[n.Tag] = true
			}
		case *ast.CallExpr:
			addCallStrings(n, add)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && strings.HasSuffix(key.Name, "Reason") {
				addLiteral(n.Value, add)
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) && strings.Contains(name.Name, "Reason") {
					addLiteral(n.Values[i], add)
				}
			}
		case *ast.AssignStmt:
			if left, ok := n.Lhs[0].(*ast.SelectorExpr); ok && left.Sel.Name == "Reason" && len(n.Rhs) == 1 {
				addLiteral(n.Rhs[0], add)
			}
		}
		if x, ok := n.(ast.Expr); ok && !skip[n] {
			if s, ok := literal(x); ok && (sentenceLike.MatchString(s) || reasonLike.MatchString(s) || strings.HasPrefix(s, "entail_")) {
				add(s)
			}
		}
		if join, ok := n.(*ast.BinaryExpr); ok {
			skip[join.X], skip[join.Y] = isLiteral(join.X), isLiteral(join.Y)
		}
		return true
	})
	return found
}

func isLiteral(x ast.Expr) bool { _, is := literal(x); return is }

// addCallStrings adds the name of a flag, and the reason of a condition.
func addCallStrings(call *ast.CallExpr, add func(string)) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "condition" && f.Sel.Name == "New" {
		for _, arg := range call.Args {
			addLiteral(arg, add)
		}
	}
	if !flagDefinition.MatchString(f.Sel.Name) || len(call.Args) < 3 {
		return
	}
	for _, arg := range call.Args {
		if s, ok := literal(arg); ok {
			add(s)
			return
		}
	}
}

func addLiteral(x ast.Expr, add func(string)) {
	if s, ok := literal(x); ok {
		add(s)
	}
}

// literal returns the value of a string literal, or of several literals joined by +. Each other part is replaced by
// "…".
func literal(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			s, err := strconv.Unquote(x.Value)
			return s, err == nil
		}
	case *ast.ParenExpr:
		return literal(x.X)
	case *ast.BinaryExpr:
		if x.Op != token.ADD {
			return "", false
		}
		left, isLeft := literal(x.X)
		right, isRight := literal(x.Y)
		if !isLeft {
			left = "…"
		}
		if !isRight {
			right = "…"
		}
		return left + right, isLeft || isRight
	}
	return "", false
}

func TestStringCheckFindsUserVisibleStrings(t *testing.T) {
	const code = `package x
import "a path/x"
type tagged struct { F int ` + "`json:\"f, omitempty\"`" + ` }
const ReasonShort = "Short"
var err = errors.New("object: not found; create it")
var e2 = fmt.Errorf("reading " + name + ": %w" + more, err)
var desc = prometheus.NewDesc("entail_rules", "Rules that hold.", nil, nil)
var opts = prometheus.CounterOpts{Name: "entail_total", Help: "Writes by result."}
func f() {
	fs.StringVar(&c.Dir, "dir", c.Dir, "directory of state")
	log.Info("stream ended", slog.String("kind", "key-only"))
	v := Verdict{Reason: "Refused"}
	v.Reason = "Late"
	return condition.New(t, false, "Pending", "wait for the store")
	switch kind { case "RoleMissing": }
	_ = "nospace" + "-either"
	c.Errorf("a tail of " + list("inner text", 1))
}`
	got := shownStrings(t, productFile{"x.go", code})
	for i := range got {
		got[i], _ = strconv.Unquote(got[i])
	}
	slices.Sort(got)
	want := []string{
		"Late", "Pending", "Refused", "RoleMissing", "Rules that hold.", "Short", "Writes by result.", "a tail of …", "dir",
		"directory of state", "entail_rules", "entail_total", "inner text", "object: not found; create it", "reading …: %w…", "stream ended", "wait for the store",
	}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
