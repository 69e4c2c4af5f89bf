package format

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/tree"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// maxBytes bounds the file. The YAML library needs a quarter of a second for each MiB.
const maxBytes = 4 << 20

// Source formats one file: standard spelling and order of keys, block style, two spaces of indentation. Documents,
// items and comments keep their order. The text is nil if the findings have errors.
func Source(file syntax.File) ([]byte, policy.Diagnostics) {
	return formatFile(file, func(*syntax.Document, *yaml.Node) error { return nil })
}

// formatFile formats a file after change has modified its documents.
func formatFile(file syntax.File, change func(*syntax.Document, *yaml.Node) error) ([]byte, policy.Diagnostics) {
	before, found := parseDocuments(file.Name, file.Content)
	if found.HasErrors() {
		return nil, found
	}
	if len(before) == 0 {
		return file.Content, found
	}
	number := 0
	out, err := formatDocuments(file.Content, func(root *yaml.Node) error {
		if number++; number > len(before) {
			return errors.New("its documents cannot be told apart")
		}
		return change(before[number-1], root)
	})
	if err == nil {
		err = verifyOutput(before, out)
	}
	if err != nil {
		var findings policy.DiagnosticCollector
		findings.Add((&policy.DocumentSource{File: file.Name}).PlaceAt(policy.Position{}), policy.CodeFormat,
			"the file cannot be formatted: "+err.Error(), "give comments lines of their own, and write plain lists and mappings")
		return nil, findings.Diagnostics()
	}
	return out, found
}

// parseDocuments reads a file. It ignores errors about the form of a manifest, because formatting corrects that form.
func parseDocuments(name string, content []byte) ([]*syntax.Document, policy.Diagnostics) {
	all, found := syntax.ParseFiles([]syntax.File{{Name: name, Content: content}}, syntax.ParseLimits{Bytes: maxBytes, GeneralBytes: maxBytes})
	return all, slices.DeleteFunc(found, func(d policy.Diagnostic) bool { return d.Code == policy.CodeManifest })
}

// verifyOutput checks that the output has the same content, and that formatting it again changes nothing. The YAML library
// sometimes moves comments.
func verifyOutput(before []*syntax.Document, out []byte) error {
	after, found := parseDocuments("", out)
	if found.HasErrors() || !equalContent(before, after) {
		return errors.New("it would not say the same")
	}
	again, err := formatDocuments(out, func(*yaml.Node) error { return nil })
	if err == nil && !bytes.Equal(out, again) {
		err = errors.New("its comments would move")
	}
	return err
}

// formatDocuments formats each document separately, so that no comment moves to another document.
func formatDocuments(content []byte, change func(root *yaml.Node) error) ([]byte, error) {
	var out bytes.Buffer
	kept := 0
	for part := range tree.SplitDocuments(strings.TrimPrefix(string(content), "\ufeff")) {
		bare, comments := scanComments(part.Text)
		text, err := formatDocument(bare, comments, change)
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		if out.Len() > 0 || text[0] == '#' && !hasContent(bare) {
			out.WriteString("---\n")
		}
		out.WriteString(text)
		kept += len(comments)
	}
	if _, all := scanComments(string(content)); len(all) != kept {
		return nil, errors.New("it would lose a comment")
	}
	return out.Bytes(), nil
}

// formatDocument returns a document with its comments, or only the comments if it has no other content.
func formatDocument(bare string, comments []placedComment, change func(root *yaml.Node) error) (string, error) {
	var read yaml.Node
	if err := yaml.Unmarshal([]byte(bare), &read); err != nil {
		return "", fmt.Errorf("reading YAML: %w", err)
	}
	if read.Kind == 0 || read.Content[0].ShortTag() == "!!null" {
		var p nodePrinter
		for _, c := range comments {
			p.printCommentLines(0, c.text)
		}
		return p.out.String(), nil
	}
	root := read.Content[0]
	about := manifestMetadata(root)
	attachComments(root, comments)
	arrangeDocument(root)
	if err := change(root); err != nil {
		return "", err
	}
	text, err := printDocument(root)
	if _, written := scanComments(text); err == nil && !equalComments(comments, written) {
		err = errors.New("it would lose a comment")
	}
	var again yaml.Node
	if err == nil {
		err = yaml.Unmarshal([]byte(text), &again)
	}
	if err == nil && about != nil && !reflect.DeepEqual(about, manifestMetadata(again.Content[0])) {
		err = errors.New("its metadata would not be the same")
	}
	return text, err
}

// manifestMetadata returns the metadata of a manifest, which does not belong to the policy; nil if there is none.
func manifestMetadata(root *yaml.Node) any {
	var manifest struct{ Metadata any }
	if err := root.Decode(&manifest); err != nil {
		return nil // Only a mapping has metadata.
	}
	return manifest.Metadata
}

// hasContent reports whether a document without its comments has content besides a marker.
func hasContent(bare string) bool {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(bare), "---"), " \n\r\t") != ""
}

func equalComments(a, b []placedComment) bool {
	texts := func(comments []placedComment) []string {
		var all []string
		for _, c := range comments {
			all = append(all, strings.Fields(c.text)...)
		}
		return slices.Sorted(slices.Values(all))
	}
	return slices.Equal(texts(a), texts(b))
}
