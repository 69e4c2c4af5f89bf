package format

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

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
	for part := range tree.Split(string(content)) {
		text, err := keepComments(part.Text)
		if err != nil {
			return nil, err
		}
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			return nil, fmt.Errorf("reading YAML: %w", err)
		}
		if document.Kind == 0 || document.Content[0].ShortTag() == "!!null" {
			continue
		}
		arrangeDocument(document.Content[0])
		if err := change(document.Content[0]); err != nil {
			return nil, err
		}
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		begin := out.Len()
		if err := encode(&out, &document); err != nil {
			return nil, fmt.Errorf("writing YAML: %w", err)
		}
		if comments(string(out.Bytes()[begin:])) != comments(part.Text) {
			return nil, errors.New("it would lose a comment")
		}
	}
	return out.Bytes(), nil
}

func encode(out *bytes.Buffer, document *yaml.Node) error {
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	return errors.Join(encoder.Encode(document), encoder.Close())
}
