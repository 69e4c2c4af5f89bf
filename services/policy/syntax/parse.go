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
	// Name is what findings call the file.
	Name    string
	Content []byte
}

// Limits bound what is read in one go. Zero fields are defaults.
type Limits struct {
	// Bytes of all files, 32 MiB by default.
	Bytes int
	// Documents in all files, 10,000 by default.
	Documents int
	// Depth of a value inside values, 32 by default.
	Depth int
	// Nodes are keys, values and items, aliases counted as often as they stand; 3 million by default.
	Nodes int
	// GeneralBytes may be in documents that use more of YAML than plain block style, 4 MiB by default.
	GeneralBytes int
}

func (l Limits) orDefault() Limits {
	return Limits{
		Bytes: cmp.Or(l.Bytes, 32<<20), Documents: cmp.Or(l.Documents, 10_000), Depth: cmp.Or(l.Depth, 32),
		Nodes: cmp.Or(l.Nodes, 3_000_000), GeneralBytes: cmp.Or(l.GeneralBytes, 4<<20),
	}
}

// Parse reads all documents of all files. Documents with errors are returned too: check finds what
// else is wrong, and makes no policy of them.
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

// file reads one file and reports whether there is reason to go on.
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

// unreadable reports why a document cannot be read, and whether there is reason to go on.
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

// oddBreak is where the first line break is that YAML has and editors do not count, -1 if there is none: the
// lines of findings would be wrong.
func oddBreak(text string) int {
	for i, r := range text {
		if r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\r' && !strings.HasPrefix(text[i+1:], "\n") {
			return i
		}
	}
	return -1
}

// misencoded returns where the text has a character that YAML does not allow.
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
