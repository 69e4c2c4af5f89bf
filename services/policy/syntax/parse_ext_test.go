package syntax_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func read(texts ...string) ([]*syntax.Document, policy.Diagnostics) {
	var files []syntax.File
	for i, text := range texts {
		files = append(files, syntax.File{Name: string(rune('p'+i)) + ".yaml", Content: []byte(text)})
	}
	return syntax.ParseFiles(files, syntax.ParseLimits{})
}

func summary(found policy.Diagnostics) string {
	var lines []string
	for _, d := range found {
		lines = append(lines, fmt.Sprintf("%s %s", d.Place, d.Code))
	}
	return strings.Join(lines, "\n")
}

func TestDocumentFormIsChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, want string
		says       []string
		// faulty texts have errors; incomplete ones lack a part.
		faulty, incomplete bool
	}{
		"unknown key": {
			text: "resourceTypess:\n  - name: foo\n", want: "p.yaml:1:1 E-UNKNOWN-KEY", says: []string{`a document has no key "resourceTypess"`, "did you mean resourceTypes?"},
			faulty: true,
		},
		"unknown key, nothing like it": {
			text: "types:\n  - name: foo\n", want: "p.yaml:1:1 E-UNKNOWN-KEY", says: []string{"resourceTypes, unions, actions and actionBindings"}, faulty: true,
		},
		"unknown key deep inside": {
			text: "actionBindings:\n  - conditions:\n      - relationshipAction: {relations: x}\n", want: "p.yaml:3:30 E-UNKNOWN-KEY", says: []string{"did you mean relation?"},
			faulty: true,
		},
		"a key in two cases": {
			text: "resourceTypes: []\nresourcetypes: []\n", want: "p.yaml:2:1 E-DUP-KEY", says: []string{"p.yaml:1:1"}, faulty: true,
		},
		"a key twice": {text: "actions:\n- name: a\n  name: b\n", want: "p.yaml:3:3 E-DUP-KEY", says: []string{"p.yaml:2:3"}, faulty: true},
		"both keys of a union": {
			text: "unions:\n- resourceTypes: [a]\n  resourceTypeNames: [b]\n", want: "p.yaml:3:22 E-DUP-KEY", faulty: true,
		},
		"document that is a list":  {text: "- a\n", want: "p.yaml:1:1 E-KIND", says: []string{"a document is a list, not a mapping"}, incomplete: true},
		"document that is a text":  {text: "hello\n", want: "p.yaml:1:1 E-KIND", incomplete: true},
		"list that is a mapping":   {text: "actions:\n  name: a\n", want: "p.yaml:2:3 E-KIND", says: []string{"dash"}, incomplete: true},
		"list that is a text":      {text: "resourceTypes: a\n", want: "p.yaml:1:16 E-KIND", incomplete: true},
		"list without a value":     {text: "resourceTypes:\nactions: ~\n"},
		"item that is nothing":     {text: "actions:\n-\n", want: "p.yaml:2:2 E-KIND", incomplete: true},
		"item that is a list":      {text: "actions:\n- - a\n", want: "p.yaml:2:3 E-KIND", incomplete: true},
		"name that is a list":      {text: "actions:\n- name: [a]\n", want: "p.yaml:2:9 E-KIND", says: []string{"write one name"}, incomplete: true},
		"target that is a list":    {text: "resourceTypes:\n- relationships:\n  - targetTypes: [[a]]\n", want: "p.yaml:3:19 E-KIND", incomplete: true},
		"roleBinding of nothing":   {text: "actionBindings:\n- conditions:\n  - roleBinding:\n", want: "p.yaml:3:17 E-KIND", says: []string{"write `roleBinding: {}`"}, faulty: true},
		"roleBinding that is true": {text: "actionBindings:\n- conditions:\n  - roleBinding: true\n", want: "p.yaml:3:18 E-KIND", faulty: true},
		"roleBinding of something": {text: "actionBindings:\n- conditions:\n  - roleBinding: {a: b}\n", want: "p.yaml:3:19 E-UNKNOWN-KEY", faulty: true},
		"step that is nothing":     {text: "actionBindings:\n- conditions:\n  - relationshipAction:\n", want: "p.yaml:3:24 E-KIND", incomplete: true},
		"tab as indentation":       {text: "actions:\n\t- name: a\n", want: "p.yaml:2:1 E-SYNTAX", says: []string{"spaces"}, incomplete: true},
		"open bracket":             {text: "actions: [\n", want: "p.yaml:1:10 E-SYNTAX", incomplete: true},
		"tag":                      {text: "actions: !mine []\n", want: "p.yaml:1:10 E-SYNTAX", says: []string{"!mine"}, incomplete: true},
		"merge of a text":          {text: "actions:\n- <<: a\n", want: "p.yaml:2:7 E-SYNTAX", incomplete: true},
		"not UTF-8":                {text: "actions:\n- name: a\xff\n", want: "p.yaml:2:10 E-ENCODING", says: []string{"UTF-8"}, incomplete: true},
		"UTF-16":                   {text: "\xff\xfea\x00", want: "p.yaml:1:1 E-ENCODING", incomplete: true},
		"control character":        {text: "actions:\n- name: a\x01\n", want: "p.yaml:2:10 E-ENCODING", says: []string{"U+0001"}, incomplete: true},
		"errors of many kinds": {
			text:       "actions: a\nunions: b\n---\nresourceTypes: c\nx: y\n",
			want:       "p.yaml:1:10 E-KIND\np.yaml:2:9 E-KIND\np.yaml:4:16 E-KIND\np.yaml:5:1 E-UNKNOWN-KEY",
			incomplete: true,
		},
		"a broken document between others": {
			text: "actions: [{name: a}]\n---\nactions: [\n---\nactions: a\n", want: "p.yaml:3:10 E-SYNTAX\np.yaml:5:10 E-KIND",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents, found := read(test.text)
			if summary(found) != test.want {
				t.Errorf("found\n%s\nwant\n%s", summary(found), test.want)
			}
			for _, d := range found {
				if d.Hint == "" {
					t.Errorf("%s has no hint", d)
				}
			}
			for _, says := range test.says {
				if text := fmt.Sprint(found, found[0].Hint, found[0].Related); !strings.Contains(text, says) {
					t.Errorf("nothing says %q: %s", says, text)
				}
			}
			if d := documents[0]; d.IsComplete() == test.incomplete || d.IsValid() == (test.faulty || test.incomplete) {
				t.Errorf("valid %t, complete %t", d.IsValid(), d.IsComplete())
			}
		})
	}
}

// contentWithoutPositions returns the content of documents without positions.
func contentWithoutPositions(documents []*syntax.Document) string {
	var b strings.Builder
	for _, d := range documents {
		fmt.Fprintf(&b, "%s:\n", d.Source.Owner)
		for _, t := range d.ResourceTypes {
			fmt.Fprintf(&b, "type %s %s\n", t.Name.Text, t.IDPrefix.Text)
			for _, r := range t.Relationships {
				fmt.Fprintf(&b, "  %s %s\n", r.Relation.Text, texts(r.Targets))
			}
		}
		for _, u := range d.Unions {
			fmt.Fprintf(&b, "union %s %s\n", u.Name.Text, texts(u.Members))
		}
		for _, a := range d.Actions {
			fmt.Fprintf(&b, "action %s\n", a.Name.Text)
		}
		for _, binding := range d.Bindings {
			fmt.Fprintf(&b, "%s on %s\n", binding.Action.Text, binding.Type.Text)
			for _, c := range binding.Conditions {
				fmt.Fprintf(&b, "  %t", c.RoleBinding)
				if step := c.RelationshipAction; step != nil {
					fmt.Fprintf(&b, " %s->%s", step.Relation.Text, step.Action.Text)
				}
				b.WriteString("\n")
			}
		}
	}
	return b.String()
}

func texts(names []syntax.Name) []string {
	var all []string
	for _, n := range names {
		all = append(all, n.Text)
	}
	return all
}

func TestEquivalentSpellingsParseEqually(t *testing.T) {
	t.Parallel()
	const plain = "resourceTypes:\n  - name: foo\n    idPrefix: permfoo\n    relationships:\n      - relation: own\n        targetTypes:\n          - name: foo\n" +
		"      - relation: via\n        targetTypes:\n          - name: foo\nunions:\n  - name: u\n    resourceTypes:\n      - name: foo\n"
	for name, text := range map[string]string{
		"lower case":       strings.ToLower(plain),
		"upper case keys":  strings.NewReplacer("name:", "NAME:", "resourceTypes:", "RESOURCETYPES:", "targetTypes:", "TARGETTYPES:").Replace(plain),
		"CRLF":             strings.ReplaceAll(plain, "\n", "\r\n"),
		"a BOM":            "\ufeff" + plain,
		"no end of line":   strings.TrimSuffix(plain, "\n"),
		"marks":            "---\n" + plain + "...\n---\n# nothing\n...\n",
		"a directive":      "%YAML 1.2\n---\n" + plain,
		"comments":         "# x\n" + strings.ReplaceAll(plain, "\n", " # x\n# x\n"),
		"bare names":       strings.ReplaceAll(plain, "- name: foo\n      ", "- foo\n      "),
		"bare members":     strings.Replace(plain, "      - name: foo\n", "      - foo\n", 1),
		"other key":        strings.Replace(plain, "    resourceTypes:\n      - name: foo\n", "    resourceTypeNames: [foo]\n", 1),
		"other key, alone": strings.Replace(plain, "    resourceTypes:\n      - name: foo\n", "    resourceTypeNames: foo\n", 1),
		"flow style":       "{resourceTypes: [{name: foo, idPrefix: permfoo, relationships: [{relation: own, targetTypes: [foo]}, {relation: via, targetTypes: [{name: foo}]}]}], unions: [{name: u, resourceTypes: [foo]}]}",
		"JSON":             `{"resourceTypes": [{"name": "foo", "idPrefix": "permfoo", "relationships": [{"relation": "own", "targetTypes": ["foo"]}, {"relation": "via", "targetTypes": ["foo"]}]}], "unions": [{"name": "u", "resourceTypes": ["foo"]}]}`,
		"an anchor":        strings.Replace(strings.Replace(plain, "targetTypes:\n", "targetTypes: &t\n", 1), "via\n        targetTypes:\n          - name: foo\n", "via\n        targetTypes: *t\n", 1),
		"a merge key": "resourceTypes:\n  - name: foo\n    idPrefix: permfoo\n    relationships:\n      - &r\n        relation: own\n        targetTypes: [foo]\n" +
			"      - <<: *r\n        RELATION: via\nunions: [{name: u, resourceTypes: [foo]}]\n",
		"merged lists of mappings": "resourceTypes:\n  - name: foo\n    idPrefix: permfoo\n    relationships:\n      - &r\n        relation: own\n        targetTypes: [foo]\n" +
			"      - <<: [{relation: via}, *r]\nunions: [{name: u, resourceTypes: [foo]}]\n",
		"a mistyped key": strings.Replace(plain, "relationships:", "relationship:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, _ := read(plain)
			got, found := read(text)
			if len(found) > 0 && name != "a mistyped key" {
				t.Fatal(found)
			}
			if contentWithoutPositions(got) != contentWithoutPositions(want) {
				t.Errorf("it says\n%s\nand not\n%s", contentWithoutPositions(got), contentWithoutPositions(want))
			}
		})
	}
}

func TestNamesHavePositions(t *testing.T) {
	t.Parallel()
	documents, found := read("actions: []\n", "\n# Provided by x\nactions:\n- name: a\n---\n# provided by: nobody\n# Provided by y-api\nactions:\n- {name: 'b'}\n")
	if len(found) > 0 || len(documents) != 3 {
		t.Fatal(found, documents)
	}
	for i, want := range []policy.DocumentSource{{File: "p.yaml", Document: 1}, {File: "q.yaml", Document: 1, Owner: "x"}, {File: "q.yaml", Document: 2, Owner: "y-api"}} {
		if got := *documents[i].Source; !reflect.DeepEqual(got, want) {
			t.Errorf("source %+v, want %+v", got, want)
		}
	}
	for i, want := range []string{"q.yaml:4:9", "q.yaml:9:10"} {
		d := documents[i+1]
		if got := d.Source.PlaceAt(d.Actions[0].Name.At).String(); got != want {
			t.Errorf("%s is at %s, want %s", d.Actions[0].Name.Text, got, want)
		}
	}
}

func TestRBACKeyIsReportedByName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"rbac: {roleResource: role}\n", "actionBindings: [{actionName: get, typeName: foo, conditions: [{rolebindingv2: {}}]}]\n",
		"resourceTypes: [{name: foo, idPrefix: foo, relationships: [{relation: own, targetTypes: [{name: foo, subjectRelation: own}]}]}]\n",
	} {
		documents, found := syntax.ParseFiles([]syntax.File{{Name: "p.yaml", Content: []byte(text)}}, syntax.ParseLimits{})
		if len(found) != 1 || !strings.Contains(found[0].Message, "RBAC v2 of permissions-api is not supported") || documents[0].IsComplete() {
			t.Errorf("%s: found %v", text, found)
		}
	}
}

func TestPositionsCountLinesLikeEditors(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"CR": "\r", "NEL": "\u0085", "LS": "\u2028", "PS": "\u2029", "CR CR LF": "\r\r\n"} {
		_, found := syntax.ParseFiles([]syntax.File{{Name: "p.yaml", Content: []byte("actions:\r\n- name: a # b" + end + "- name: c\n")}}, syntax.ParseLimits{})
		if len(found) != 1 || found[0].Code != policy.CodeEncoding || found[0].Line != 2 || found[0].Column != 14 {
			t.Errorf("%s: found %v", name, found)
		}
	}
	documents, found := syntax.ParseFiles([]syntax.File{{Name: "p.yaml", Content: []byte("actions:\r\n- name: a\r\n---\r\nactions: []\r\n")}}, syntax.ParseLimits{})
	if len(documents) != 2 || len(found) > 0 {
		t.Errorf("CR LF: %d documents, %v", len(documents), found)
	}
}
