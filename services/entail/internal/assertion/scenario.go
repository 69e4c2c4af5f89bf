package assertion

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file of assertions: bytes, documents and lines.
const (
	MaxBytes     = 4 << 20
	maxScenarios = 1000
	maxLines     = 20_000
)

// Scenario is one YAML document: relationships, and the answers that must follow from them.
type Scenario struct {
	File string `yaml:"-"`
	// Name appears in failures.
	Name string `yaml:"name"`
	// Tuples holds relationships in the form object#relation@user.
	Tuples []NumberedLine `yaml:"tuples"`
	// Allow and Deny hold questions in the form "subject action object".
	Allow []NumberedLine `yaml:"allow"`
	Deny  []NumberedLine `yaml:"deny"`
}

// NumberedLine is a text with its line number in the file.
type NumberedLine struct {
	Text string
	Line int
}

// UnmarshalYAML accepts only a text.
func (l *NumberedLine) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		return fmt.Errorf("line %d: a text is expected, in quotes if need be", node.Line)
	}
	l.Text, l.Line = strings.TrimSpace(node.Value), node.Line
	return nil
}

// tuple is a relationship.
type tuple struct{ object, relation, user string }

func (t tuple) String() string { return t.object + "#" + t.relation + "@" + t.user }

func (l NumberedLine) parseTuple() (tuple, error) {
	object, rest, ok := strings.Cut(l.Text, "#")
	relation, user, found := strings.Cut(rest, "@")
	if !ok || !found || typeOfObject(object) == "" || relation == "" || typeOfObject(user) == "" {
		return tuple{}, fmt.Errorf("%.200q is not a relationship: write object#relation@user, such as tenant:a#parent@tenant:b", l.Text)
	}
	return tuple{object, relation, user}, nil
}

// accessCheck is whether subject may take action on object.
type accessCheck struct{ subject, action, object string }

func (l NumberedLine) parseAccessCheck() (accessCheck, error) {
	words := strings.Fields(l.Text)
	if len(words) != 3 || typeOfObject(words[0]) == "" || typeOfObject(words[2]) == "" {
		return accessCheck{}, fmt.Errorf("%.200q is not a question: write subject action object, such as user:alice tenant_get tenant:a", l.Text)
	}
	return accessCheck{words[0], words[1], words[2]}, nil
}

// typeOfObject returns the type of type:id, or an empty text for any other form.
func typeOfObject(object string) string {
	kind, id, _ := strings.Cut(object, ":")
	if id == "" {
		return ""
	}
	return kind
}

// ParseScenarios reads a file of scenarios. Its error names file and line.
func ParseScenarios(file string, content []byte) ([]Scenario, error) {
	if len(content) > MaxBytes {
		return nil, fmt.Errorf("%s: %d bytes are too many: at most %d", file, len(content), MaxBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	var all []Scenario
	lines := 0
	for {
		s := Scenario{File: file}
		err := decoder.Decode(&s)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if len(s.Allow)+len(s.Deny) == 0 {
			return nil, fmt.Errorf("%s: document %d asserts nothing: give allow or deny", file, len(all)+1)
		}
		all = append(all, s)
		if lines += len(s.Tuples) + len(s.Allow) + len(s.Deny); lines > maxLines || len(all) > maxScenarios {
			return nil, fmt.Errorf("%s: too much: at most %d documents and %d relationships and assertions", file, maxScenarios, maxLines)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there are no assertions in it", file)
	}
	return all, nil
}
