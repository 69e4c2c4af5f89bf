package syntax

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/tree"
)

// File is a YAML stream of documents.
type File struct {
	// Name is the name of the file in findings.
	Name    string
	Content []byte
}

// Limits bounds the input of one call. Zero fields mean defaults.
type Limits struct {
	// Bytes bounds all files together. The default is 32 MiB.
	Bytes int
	// Documents bounds the documents in all files. The default is 10,000.
	Documents int
	// Depth bounds the nesting of values. The default is 32.
	Depth int
	// Nodes bounds the keys, values and items. An alias counts each time that it is used. The default is 3 million.
	Nodes int
	// GeneralBytes bounds the documents that use more of YAML than plain block style. The default is 4 MiB.
	GeneralBytes int
}

func (l Limits) orDefault() Limits {
	return Limits{
		Bytes: cmp.Or(l.Bytes, 32<<20), Documents: cmp.Or(l.Documents, 10_000), Depth: cmp.Or(l.Depth, 32),
		Nodes: cmp.Or(l.Nodes, 3_000_000), GeneralBytes: cmp.Or(l.GeneralBytes, 4<<20),
	}
}

// Parse reads all documents of all files. It also returns documents with errors: package check finds their other
// errors, but makes no policy of them.
func Parse(files []File, limits Limits) ([]*Document, policy.Diagnostics) {
	limits = limits.orDefault()
	p := parser{limits: limits, budget: tree.Budget{Depth: limits.Depth, Nodes: limits.Nodes, General: limits.GeneralBytes}}
	for _, f := range files {
		if p.bytes += len(f.Content); p.bytes > limits.Bytes {
			p.refuse(&policy.Source{File: f.Name}, fmt.Sprintf("the files have more than %d bytes", limits.Bytes))
			break
		}
		if !p.file(f) {
			break
		}
	}
	return p.documents, p.findings.Diagnostics()
}

type parser struct {
	limits       Limits
	budget       tree.Budget
	bytes, count int
	documents    []*Document
	findings     policy.Collector
}

// file reads one file, and reports whether to continue.
func (p *parser) file(f File) bool {
	number := 0
	for part := range tree.Split(strings.TrimPrefix(string(f.Content), "\ufeff")) {
		number++
		source := &policy.Source{File: f.Name, Document: number, Owner: ownerOf(part.Text)}
		if p.count++; p.count > p.limits.Documents {
			p.refuse(source, fmt.Sprintf("there are more than %d documents", p.limits.Documents))
			return false
		}
		if !p.document(source, part) {
			return false
		}
	}
	return true
}

func (p *parser) document(source *policy.Source, part tree.Part) bool {
	root, err := tree.Parse(part.Text, part.Line, &p.budget)
	if err != nil || !utf8.ValidString(part.Text) || oddBreak(part.Text) >= 0 {
		return p.unreadable(source, part, err)
	}
	if root.Kind == tree.Null {
		return true
	}
	d := decoder{document: &Document{Source: source}, findings: &p.findings}
	d.decode(root)
	p.documents = append(p.documents, d.document)
	return true
}

// unreadable reports why a document cannot be read, and returns whether to continue.
func (p *parser) unreadable(source *policy.Source, part tree.Part, err error) bool {
	p.documents = append(p.documents, &Document{Source: source, faulty: true, incomplete: true})
	e, code := &tree.Error{}, policy.CodeSyntax
	switch wrong := misencoded(part); {
	case errors.As(err, &e) && e.Limit:
		code = policy.CodeLimit
	case wrong != nil:
		e, code = wrong, policy.CodeEncoding
	}
	p.findings.Add(source.At(policy.TextPosition(e.Line, e.Column)), code, e.Message, e.Hint)
	return !e.Limit
}

func (p *parser) refuse(source *policy.Source, message string) {
	p.documents = append(p.documents, &Document{Source: source, faulty: true, incomplete: true})
	p.findings.Add(source.At(policy.Position{}), policy.CodeLimit, message, "split the policy, or raise the limit")
}

// oddBreak returns the index of the first line break that only YAML recognizes, or -1. Editors do not count it, so the
// lines of findings would be wrong.
func oddBreak(text string) int {
	for i, r := range text {
		if r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\r' && !strings.HasPrefix(text[i+1:], "\n") {
			return i
		}
	}
	return -1
}

// misencoded returns an error for the first character that YAML does not allow, or nil.
func misencoded(part tree.Part) *tree.Error {
	line, column := int32(part.Line), int32(1)
	odd := oddBreak(part.Text)
	for i, r := range part.Text {
		switch {
		case i == odd:
			return &tree.Error{
				Line: line, Column: column, Message: fmt.Sprintf("the text has %U as the end of a line, which only YAML knows as one", r),
				Hint: "end lines by a line feed",
			}
		case r == '\n':
			line, column = line+1, 0
		case r == utf8.RuneError && !strings.HasPrefix(part.Text[i:], string(utf8.RuneError)):
			return &tree.Error{Line: line, Column: column, Message: "the text is not UTF-8", Hint: "save the file as UTF-8"}
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return &tree.Error{
				Line: line, Column: column, Message: fmt.Sprintf("the text has the control character %U", r), Hint: "remove the character",
			}
		}
		column++
	}
	return nil
}
