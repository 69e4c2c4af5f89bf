package archtest

import (
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
	// query matches the name of a method that must not change its receiver.
	query = regexp.MustCompile(`^(?:[Ii]s|[Hh]as|[Cc]an|[Ss]hould|[Nn]eeds|[Cc]ontains|[Mm]atches|[Ee]quals?|[Gg]et|[Ll]ist|[Ff]ind|[Ll]ookup)(?:[A-Z]|$)`)
	// boolQuery matches further names of such methods, for methods that return one bool.
	boolQuery = regexp.MustCompile(`^(?:[Nn]eed|[Mm]atch|[Aa]llows?|[Ss]upports?|[Ee]xists?|[Mm]ust|[Mm]ay|[Ii]ncludes?|[Vv]alid|[Ii]n)(?:[A-Z]|$)`)
)

// caches returns the queries that may write, with the reason. Their callers do not see the difference.
func caches() map[string]string {
	const epoch = "caches the epoch of the API server, and the version in which it serves a kind"
	return map[string]string{
		"services/internal/fga oauthTokenSource.getToken":            "caches the token",
		"services/internal/filewatch Files.Get":                      "caches what the files hold",
		"services/internal/kube Client.Get":                          epoch,
		"services/tuple-sync/derived tupleReplica.hasExactlyDesired": "caches true until something changes",

		"services/watcher observedLease.Get":                           "implements client-go's resourcelock.Interface; keeps the holder for a metric",
		"services/watcher/internal/reflector registrationTracker.List": "implements Source; keeps the kinds that it lists",

		"services/watcher/internal/source Source.Get":       epoch,
		"services/watcher/internal/source Source.List":      epoch,
		"services/watcher/internal/source Source.ListNamed": epoch,
		"services/watcher/internal/source Source.listPage":  epoch,

		"services/webhook expectedObject.isSatisfiedByChange": "caches the last version that differed",
		"services/webhook expectedObject.isSatisfiedByObject": "caches the last version that differed",
	}
}

// A method with the name of a query must not change its receiver. It assigns no field, element or pointee of the
// receiver, and calls no other method of the type that does. Locking a mutex is allowed.
func TestQueriesDoNotAssignToReceiver(t *testing.T) {
	unused := caches()
	for _, tree := range trees() {
		byDir, fset := map[string][]*ast.File{}, token.NewFileSet()
		for _, file := range productFiles(t, filepath.Join(root, "..", tree)) {
			parsed, err := parser.ParseFile(fset, file.path, file.text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file.path)), "../../../")
			byDir[dir] = append(byDir[dir], parsed)
		}
		for dir, files := range byDir {
			for _, name := range writingQueries(files) {
				if caches()[dir+" "+name] == "" {
					t.Errorf("%s: %s writes its receiver; stop writing, or name it as a command", dir, name)
				}
				delete(unused, dir+" "+name)
			}
		}
	}
	for name := range unused {
		t.Errorf("%s writes no more; remove it from the exceptions", name)
	}
}

// method is a method of a package, with the relevant parts of its body.
type method struct {
	name, typ string
	promises  bool     // its name promises no change
	writes    bool     // it assigns a part of its receiver
	calls     []string // the methods of its own receiver that it calls
}

// writingQueries returns the methods of a package with the name of a query that write.
func writingQueries(files []*ast.File) []string {
	methods := map[string]*method{}
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Body != nil && len(f.Recv.List[0].Names) == 1 {
				m := newMethod(f)
				methods[m.typ+"."+m.name] = m
			}
		}
	}
	for changed := true; changed; { // Until no more writes are found through other methods.
		changed = false
		for _, m := range methods {
			through := func(name string) bool { called := methods[m.typ+"."+name]; return called != nil && called.writes }
			if !m.writes && slices.ContainsFunc(m.calls, through) {
				m.writes, changed = true, true
			}
		}
	}
	var found []string
	for _, m := range methods {
		if m.promises && m.writes {
			found = append(found, m.typ+"."+m.name)
		}
	}
	slices.Sort(found)
	return found
}

func newMethod(f *ast.FuncDecl) *method {
	receiver := f.Recv.List[0]
	_, pointer := receiver.Type.(*ast.StarExpr)
	m := &method{name: f.Name.Name, promises: query.MatchString(f.Name.Name) || isPredicate(f)}
	if name, ok := baseTypeName(receiver.Type).(*ast.Ident); ok {
		m.typ = name.Name
	}
	self := receiver.Names[0].Name
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				m.writes = m.writes || n.Tok != token.DEFINE && isWriteOf(left, self, pointer)
			}
		case *ast.IncDecStmt:
			m.writes = m.writes || isWriteOf(n.X, self, pointer)
		case *ast.CallExpr:
			m.addCall(n, self)
		}
		return true
	})
	return m
}

// isPredicate reports whether a function returns one bool and has the name of a query.
func isPredicate(f *ast.FuncDecl) bool {
	if f.Type.Results.NumFields() != 1 || !boolQuery.MatchString(f.Name.Name) {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "bool"
}

// addCall records a call of a method of the receiver, and a write by a built-in function.
func (m *method) addCall(call *ast.CallExpr, self string) {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && x.Name == self {
			m.calls = append(m.calls, f.Sel.Name)
		}
	case *ast.Ident:
		if (f.Name == "delete" || f.Name == "clear") && rootOf(call.Args[0]) == self {
			m.writes = true
		}
	}
}

// isWriteOf reports whether an assignment to the expression changes the receiver after the call. For a receiver that
// is not a pointer, only assignments to elements and pointees do.
func isWriteOf(left ast.Expr, self string, pointer bool) bool {
	if _, name := left.(*ast.Ident); name || rootOf(left) != self {
		return false
	}
	for !pointer {
		switch x := left.(type) {
		case *ast.SelectorExpr:
			left = x.X
		case *ast.Ident:
			return false
		default:
			return true
		}
	}
	return true
}

// rootOf returns the name of the variable at the start of an expression such as x.f[i].
func rootOf(x ast.Expr) string {
	for {
		switch e := x.(type) {
		case *ast.SelectorExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.ParenExpr:
			x = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

func TestQueryCheckFindsWrites(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		want   bool
	}{
		"field":                  {"func (s *state) isDue() bool { s.n = 1; return true }", true},
		"counter":                {"func (s *state) isDue() bool { s.n++; return true }", true},
		"element":                {"func (s *state) getKey() int { s.m[1] = 2; return 1 }", true},
		"element of a copy":      {"func (s state) getKey() int { s.m[1] = 2; return 1 }", true},
		"pointee":                {"func (b *budget) canSpend() bool { *b -= 1; return *b > 0 }", true},
		"deleted element":        {"func (s *state) listKeys() []int { delete(s.m, 1); return nil }", true},
		"in a closure":           {"func (s *state) hasKey() bool { f := func() { s.n = 1 }; f(); return true }", true},
		"through another method": {"func (s *state) findKey() int { return s.step() }\nfunc (s *state) step() int { return s.load() }", true},
		"field of a copy":        {"func (s state) isDue() bool { s.n = 1; return true }", false},
		"local variable":         {"func (s *state) isDue() bool { n := s.n; n++; return n > 1 }", false},
		"lock":                   {"func (s *state) isDue() bool { s.mu.Lock(); defer s.mu.Unlock(); return true }", false},
		"command":                {"func (s *state) markDue() bool { s.n = 1; return true }", false},
		"name that only begins":  {"func (s *state) issue() bool { s.n = 1; return true }", false},
		"command with a result":  {"func (s *state) issueKey() int { s.n = 1; return 1 }", false},
		"getter only in letters": {"func (s *state) listen() int { s.n = 1; return 1 }", false},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc (s *state) load() int { s.n = 2; return s.n }\n"+test.method, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := writingQueries([]*ast.File{file}); (len(got) > 0) != test.want {
			t.Errorf("%s: got %s, want %t", name, strings.Join(got, ", "), test.want)
		}
	}
}
