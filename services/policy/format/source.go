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

// maxBytes bounds the file: comments are kept by a YAML library, which takes a quarter of a second for each MiB.
const maxBytes = 4 << 20

// Source formats one file: keys as the language spells them and in its order, block style, two spaces of
// indentation. Documents, items and comments stay where they are. There is a text unless the findings have errors.
func Source(file syntax.File) ([]byte, policy.Diagnostics) {
	return write(file, func(*syntax.Document, *yaml.Node) error { return nil })
}

// write formats a file whose documents were made something else of.
func write(file syntax.File, change func(*syntax.Document, *yaml.Node) error) ([]byte, policy.Diagnostics) {
	before, found := documents(file.Name, file.Content)
	if found.HasErrors() {
		return nil, found
	}
	if len(before) == 0 {
		return file.Content, found
	}
	number := 0
	out, err := rewrite(file.Content, func(root *yaml.Node) error {
		if number++; number > len(before) {
			return errors.New("its documents cannot be told apart")
		}
		return change(before[number-1], root)
	})
	if err == nil {
		err = verify(before, out)
	}
	if err != nil {
		var findings policy.Collector
		findings.Add((&policy.Source{File: file.Name}).At(policy.Position{}), policy.CodeFormat,
			"the file cannot be formatted: "+err.Error(), "give comments lines of their own, and write plain lists and mappings")
		return nil, findings.Diagnostics()
	}
	return out, found
}

// documents reads a file. That a manifest has not the one form is no reason to refuse it: formatting mends it.
func documents(name string, content []byte) ([]*syntax.Document, policy.Diagnostics) {
	all, found := syntax.Parse([]syntax.File{{Name: name, Content: content}}, syntax.Limits{Bytes: maxBytes, GeneralBytes: maxBytes})
	return all, slices.DeleteFunc(found, func(d policy.Diagnostic) bool { return d.Code == policy.CodeManifest })
}

// verify sees to it that what was written says the same, and would be written so again: the library
// sometimes moves comments.
func verify(before []*syntax.Document, out []byte) error {
	after, found := documents("", out)
	if found.HasErrors() || !same(before, after) {
		return errors.New("it would not say the same")
	}
	again, err := rewrite(out, func(*yaml.Node) error { return nil })
	if err == nil && !bytes.Equal(out, again) {
		err = errors.New("its comments would move")
	}
	return err
}

// rewrite formats each document by itself, so that no comment gets from one to the other.
func rewrite(content []byte, change func(root *yaml.Node) error) ([]byte, error) {
	var out bytes.Buffer
	kept := 0
	for part := range tree.Split(strings.TrimPrefix(string(content), "\ufeff")) {
		bare, comments := scan(part.Text)
		text, err := formatted(bare, comments, change)
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		if out.Len() > 0 || text[0] == '#' && !holds(bare) {
			out.WriteString("---\n")
		}
		out.WriteString(text)
		kept += len(comments)
	}
	if _, all := scan(string(content)); len(all) != kept {
		return nil, errors.New("it would lose a comment")
	}
	return out.Bytes(), nil
}

// formatted is a document with its comments; a document of nothing else is its comments.
func formatted(bare string, comments []comment, change func(root *yaml.Node) error) (string, error) {
	var read yaml.Node
	if err := yaml.Unmarshal([]byte(bare), &read); err != nil {
		return "", fmt.Errorf("reading YAML: %w", err)
	}
	if read.Kind == 0 || read.Content[0].ShortTag() == "!!null" {
		var p printer
		for _, c := range comments {
			p.lines(0, c.text)
		}
		return p.out.String(), nil
	}
	root := read.Content[0]
	about := metadata(root)
	attach(root, comments)
	arrangeDocument(root)
	if err := change(root); err != nil {
		return "", err
	}
	text, err := document(root)
	if _, written := scan(text); err == nil && !sameComments(comments, written) {
		err = errors.New("it would lose a comment")
	}
	var again yaml.Node
	if err == nil {
		err = yaml.Unmarshal([]byte(text), &again)
	}
	if err == nil && about != nil && !reflect.DeepEqual(about, metadata(again.Content[0])) {
		err = errors.New("its metadata would not be the same")
	}
	return text, err
}

// metadata is that of a manifest, which is no part of the policy; nil if there is none.
func metadata(root *yaml.Node) any {
	var manifest struct{ Metadata any }
	if err := root.Decode(&manifest); err != nil {
		return nil // What is no mapping has no metadata.
	}
	return manifest.Metadata
}

// holds reports whether there is more than a mark in a document without its comments.
func holds(bare string) bool {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(bare), "---"), " \n\r\t") != ""
}

func sameComments(a, b []comment) bool {
	texts := func(comments []comment) []string {
		var all []string
		for _, c := range comments {
			all = append(all, strings.Fields(c.text)...)
		}
		return slices.Sorted(slices.Values(all))
	}
	return slices.Equal(texts(a), texts(b))
}
