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

// ParseLimits bounds the input of one call. Zero fields mean defaults.
type ParseLimits struct {
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

func (l ParseLimits) orDefault() ParseLimits {
	return ParseLimits{
		Bytes: cmp.Or(l.Bytes, 32<<20), Documents: cmp.Or(l.Documents, 10_000), Depth: cmp.Or(l.Depth, 32),
		Nodes: cmp.Or(l.Nodes, 3_000_000), GeneralBytes: cmp.Or(l.GeneralBytes, 4<<20),
	}
}

// ParseFiles reads all documents of all files. It also returns documents with errors: package check finds their other
// errors, but makes no policy of them.
func ParseFiles(files []File, limits ParseLimits) ([]*Document, policy.Diagnostics) {
	limits = limits.orDefault()
	p := fileParser{limits: limits, budget: tree.ParseBudget{Depth: limits.Depth, Nodes: limits.Nodes, LibraryBytes: limits.GeneralBytes}}
	for _, f := range files {
		if p.bytes += len(f.Content); p.bytes > limits.Bytes {
			p.reportRefusedSource(&policy.DocumentSource{File: f.Name}, fmt.Sprintf("the files have more than %d bytes", limits.Bytes))
			break
		}
		if !p.parseFile(f) {
			break
		}
	}
	return p.documents, p.findings.Diagnostics()
}

type fileParser struct {
	limits       ParseLimits
	budget       tree.ParseBudget
	bytes, count int
	documents    []*Document
	findings     policy.DiagnosticCollector
}

// parseFile reads one file, and reports whether to continue.
func (p *fileParser) parseFile(f File) bool {
	number := 0
	for part := range tree.SplitDocuments(strings.TrimPrefix(string(f.Content), "\ufeff")) {
		number++
		source := &policy.DocumentSource{File: f.Name, Document: number, Owner: ownerFromComment(part.Text)}
		if p.count++; p.count > p.limits.Documents {
			p.reportRefusedSource(source, fmt.Sprintf("there are more than %d documents", p.limits.Documents))
			return false
		}
		if !p.parseDocument(source, part) {
			return false
		}
	}
	return true
}

func (p *fileParser) parseDocument(source *policy.DocumentSource, part tree.RawDocument) bool {
	root, err := tree.ParseDocument(part.Text, part.Line, &p.budget)
	if err != nil || !utf8.ValidString(part.Text) || oddLineBreakIndex(part.Text) >= 0 {
		return p.reportUnreadable(source, part, err)
	}
	if root.Kind == tree.Null {
		return true
	}
	d := documentDecoder{document: &Document{Source: source}, findings: &p.findings}
	d.decodeDocument(root)
	p.documents = append(p.documents, d.document)
	return true
}

// reportUnreadable reports why a document cannot be read, and returns whether to continue.
func (p *fileParser) reportUnreadable(source *policy.DocumentSource, part tree.RawDocument, err error) bool {
	p.documents = append(p.documents, &Document{Source: source, faulty: true, incomplete: true})
	e, code := &tree.ParseError{}, policy.CodeSyntax
	switch wrong := encodingError(part); {
	case errors.As(err, &e) && e.Limit:
		code = policy.CodeLimit
	case wrong != nil:
		e, code = wrong, policy.CodeEncoding
	}
	p.findings.Add(source.PlaceAt(policy.TextPosition(e.Line, e.Column)), code, e.Message, e.Hint)
	return !e.Limit
}

func (p *fileParser) reportRefusedSource(source *policy.DocumentSource, message string) {
	p.documents = append(p.documents, &Document{Source: source, faulty: true, incomplete: true})
	p.findings.Add(source.PlaceAt(policy.Position{}), policy.CodeLimit, message, "split the policy, or raise the limit")
}

// oddLineBreakIndex returns the index of the first line break that only YAML recognizes, or -1. Editors do not count it, so the
// lines of findings would be wrong.
func oddLineBreakIndex(text string) int {
	for i, r := range text {
		if r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\r' && !strings.HasPrefix(text[i+1:], "\n") {
			return i
		}
	}
	return -1
}

// encodingError returns an error for the first character that YAML does not allow, or nil.
func encodingError(part tree.RawDocument) *tree.ParseError {
	line, column := int32(part.Line), int32(1)
	odd := oddLineBreakIndex(part.Text)
	for i, r := range part.Text {
		switch {
		case i == odd:
			return &tree.ParseError{
				Line: line, Column: column, Message: fmt.Sprintf("the text has %U as the end of a line, which only YAML knows as one", r),
				Hint: "end lines by a line feed",
			}
		case r == '\n':
			line, column = line+1, 0
		case r == utf8.RuneError && !strings.HasPrefix(part.Text[i:], string(utf8.RuneError)):
			return &tree.ParseError{Line: line, Column: column, Message: "the text is not UTF-8", Hint: "save the file as UTF-8"}
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return &tree.ParseError{
				Line: line, Column: column, Message: fmt.Sprintf("the text has the control character %U", r), Hint: "remove the character",
			}
		}
		column++
	}
	return nil
}
