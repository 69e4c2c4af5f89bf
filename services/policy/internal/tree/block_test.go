package tree

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func budget() *ParseBudget { return &ParseBudget{Depth: 32, Nodes: 1 << 20, LibraryBytes: 1 << 20} }

// dump writes a node with its positions.
func dump(n Node) string {
	at := fmt.Sprintf("%d:%d", n.Line, n.Column)
	switch n.Kind {
	case Null:
		return at + " null"
	case Scalar:
		return at + " " + fmt.Sprintf("%q", n.Text)
	default:
		parts := make([]string, len(n.Children))
		for i, child := range n.Children {
			parts[i] = dump(child)
		}
		if n.Kind == Sequence {
			return at + " [" + strings.Join(parts, ", ") + "]"
		}
		return at + " {" + strings.Join(parts, ", ") + "}"
	}
}

// scan reads a text only with the scanner.
func scan(text string) (Node, bool) {
	b := blockScanner{text: text, budget: budget(), nodes: budget().Nodes}
	return b.readDocument()
}

func library(text string) (Node, error) {
	return parseWithLibrary(text, 1, budget(), &blockScanner{text: text})
}

func plainDocuments() []string {
	return []string{
		"", "\n", "# nothing\n", "---\n", "--- # nothing\n", "a: b", "a: b\n", "a:\n", "a:", "- a\n- b\n",
		"a: b\r\nc:\r\n  - d\r\n", "  a: b\n  c: d\n", "a:\n- b\n- c\nd: e\n", "a:\n  - b\n  -\n  - c: d\n    e: f\n",
		"- - a\n  - b\n-   - c\n- d:\n  - e\n", "a: {}\nb: []\nc: null\nd: Null\ne: nullify\n", "a: 'b c'\nd: \"e\"  # f\n", "a: ''\n",
		"- a: b\n\n  # c\n  d: e # f\n", "a:\n    b:\n      c: d\n    e: f\ng: h", "a:   b   \n", "a: 1.5\nb: x/y-z\n",
		"-\n  a: b\n", "- # c\n  - a\n", "---\n\n\na: b\n", "a:\n  # c\n", "-\n-\n", "a:\n -\n", "a: b\nA: c\n", "null: a\ntrue: b\n",
	}
}

func TestScannerEqualsLibrary(t *testing.T) {
	t.Parallel()
	fixture, err := os.ReadFile("../../testdata/loadbalancer/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := append(plainDocuments(), strings.SplitAfter(string(fixture), "\n---\n")...)
	for _, text := range documents {
		text = strings.TrimSuffix(text, "---\n")
		fast, ok := scan(text)
		if !ok {
			t.Errorf("the scanner declines %q", text)
			continue
		}
		slow, err := library(text)
		if err != nil {
			t.Errorf("the scanner reads %q, the library does not: %v", text, err)
		}
		if dump(fast) != dump(slow) {
			t.Errorf("%q:\nscanner %s\nlibrary %s", text, dump(fast), dump(slow))
		}
	}
}

func TestScannerDeclinesUnknownSyntax(t *testing.T) {
	t.Parallel()
	for _, text := range oddDocuments() {
		if n, ok := scan(text); ok {
			t.Errorf("scanner read %q as %s", text, dump(n))
		}
	}
}

func oddDocuments() []string {
	return []string{
		"a: b c", "a: b\n  c", "a: &x b", "a: *x", "<<: a", "a: |\n  b", "a: [b]", "a: {b: c}", "? a", "a: b: c", "a: - b", "'a': b", "a : b",
		"\ta: b", "a:\tb", "a: ~", "a: !x b", "a: 'b''c'", `a: "\n"`, "a: ä", "# ä", "a: b # ä", "%YAML 1.2\n---\na: b", "a", "a:\n  b", "--- a: b",
		"a:\n    b: c\n  d: e", "a: b\n- c", "- a\nb: c", "a: b\n  c: d", "- a\n  - b", "a: 'b", "a: b\n...\n", "a: b\r", "a: {} b", "a: .5", "a: =", "a: b#c", "a: -1", "--- #\r\r\n-", "---\n---",
	}
}

func TestSyntaxErrorsNameLineAndColumn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, place, hint string
	}{
		"tab as indentation":   {"a:\n  b: c\n\td: e\n", "13:1", "spaces"},
		"tab after spaces":     {"a:\n  \tb: c\n", "12:3", "spaces"},
		"wrong indentation":    {"a:\n    b: c\n  d: e\n", "13:3", "indentation"},
		"two colons":           {"a: b\nc: d: e\n", "12:5", "check indentation"},
		"open bracket":         {"a: [b\nc: d\n", "11:4", "brackets"},
		"open quote":           {"a: 'b\nc: d\n", "11:4", "quotes"},
		"unknown alias":        {"a: *b\n", "11:4", "check indentation"},
		"list after a mapping": {"a: b\n- c\n", "12:1", "check indentation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseDocument(test.text, 11, budget())
			e, ok := errors.AsType[*ParseError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if place := fmt.Sprintf("%d:%d", e.Line, e.Column); place != test.place || !strings.Contains(e.Hint, test.hint) {
				t.Errorf("got %s %s (%s), want %s and %q", place, e.Message, e.Hint, test.place, test.hint)
			}
		})
	}
}

func FuzzScannerEqualsLibrary(f *testing.F) {
	for _, text := range append(plainDocuments(), oddDocuments()...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fast, ok := scan(text)
		if !ok {
			return
		}
		slow, err := library(text)
		if err != nil {
			t.Fatalf("the scanner reads %q as %s, the library: %v", text, dump(fast), err)
		}
		if dump(fast) != dump(slow) {
			t.Fatalf("%q:\nscanner %s\nlibrary %s", text, dump(fast), dump(slow))
		}
	})
}
