package check_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
)

// base is a policy in which foo leads to bar through own, and both have the action get.
const base = `resourceTypes:
- {name: foo, idPrefix: permfoo, relationships: [{relation: own, targetTypes: [bar]}]}
- {name: bar, idPrefix: permbar}
actions: [{name: get}]
actionBindings:
- {actionName: get, typeName: bar, conditions: [{roleBinding: {}}]}
- {actionName: get, typeName: foo, conditions: [{roleBinding: {}}, {relationshipAction: {relation: own, actionName: get}}]}
`

// A line of a case binds action put to a type; these are its beginnings and parts.
const (
	put     = "actions: [{name: put}]\n"
	putFoo  = put + "actionBindings: [{actionName: put, typeName: foo, conditions: "
	viaOwn  = "{relation: own, actionName: get}"
	baz     = "resourceTypes: [{name: baz, idPrefix: permbaz}]\n"
	bazGet  = "actionBindings: [{actionName: get, typeName: baz, conditions: [{roleBinding: {}}]}]\n"
	overlap = "unions: [{name: u, resourceTypes: [foo, bar]}, {name: v, resourceTypes: [bar]}]\n"
)

// invalidPolicy is an invalid policy. A ^ in its text is not part of it, but marks the place of a finding.
type invalidPolicy struct {
	// text is added to the base as a second document; alone is the whole policy.
	text, alone string
	options     policy.Options
	// want lists the codes of the findings; those without a place come first.
	want string
	// says lists parts of the messages, hints and related places of the findings. The base is document 1.
	says []string
}

func names() map[string]invalidPolicy {
	return map[string]invalidPolicy{
		"type in upper case":            {text: "resourceTypes: [{name: ^Baz, idPrefix: permbaz}]", want: "E-NAME"},
		"type with a digit first":       {text: "resourceTypes: [{name: ^1baz, idPrefix: permbaz}]", want: "E-NAME"},
		"type with a dash":              {text: "resourceTypes: [{name: ^b-az, idPrefix: permbaz}]", want: "E-NAME"},
		"type without a name":           {text: "resourceTypes: [^{idPrefix: permbaz}]", want: "E-MISSING", says: []string{"name is missing"}},
		"type with an empty name":       {text: "resourceTypes: [{name: ^'', idPrefix: permbaz}]", want: "E-MISSING"},
		"union in upper case":           {text: "unions: [{name: ^All, resourceTypes: [foo]}]", want: "E-NAME"},
		"relation of two words":         {text: bazTo("^own er", "foo"), want: "E-NAME"},
		"relation with a digit":         {text: bazTo("^own2", "foo"), want: "E-NAME"},
		"relation with an underscore":   {text: bazTo("own_er", "foo") + bazGet},
		"relation without a name":       {text: bazTo("^''", "foo"), want: "E-MISSING"},
		"action of one letter":          {text: "actions: [{name: ^a}]", want: "E-NAME"},
		"action in upper case":          {text: "actions: [{name: ^Aget}]", want: "E-NAME"},
		"action with a digit":           {text: "actions: [{name: ^get2}]", want: "E-NAME"},
		"action with a dash":            {text: "actions: [{name: ^get-x}]", want: "E-NAME"},
		"action of two letters":         {text: "actions: [{name: ab}]\nactionBindings: [{actionName: ab, typeName: foo, conditions: [{roleBinding: {}}]}]"},
		"action with underscore at end": {text: "actions: [{name: get_}]\nactionBindings: [{actionName: get_, typeName: foo, conditions: [{roleBinding: {}}]}]"},
		"no idPrefix":                   {text: "resourceTypes: [^{name: baz}]\n" + bazGet, want: "E-MISSING", says: []string{"idPrefix is missing"}},
		"empty idPrefix":                {text: "resourceTypes: [{name: baz, idPrefix: ^''}]\n" + bazGet, want: "E-MISSING"},
		"short idPrefix":                {text: "resourceTypes: [{name: baz, idPrefix: ^fo}]\n" + bazGet, want: "E-ID-PREFIX"},
		"idPrefix with a dash":          {text: "resourceTypes: [{name: baz, idPrefix: ^foo-bar}]\n" + bazGet, want: "E-ID-PREFIX"},
		"idPrefix in upper case":        {text: "resourceTypes: [{name: baz, idPrefix: ^FOO}]\n" + bazGet, want: "E-ID-PREFIX"},
		"idPrefix of three letters":     {text: "resourceTypes: [{name: baz, idPrefix: foo}]\n" + bazGet},
		"idPrefix of digits":            {text: "resourceTypes: [{name: baz, idPrefix: 123}]\n" + bazGet},
		"one idPrefix for two types": {
			text: "resourceTypes: [{name: baz, idPrefix: ^permfoo}]\n" + bazGet, want: "E-DUP-ID-PREFIX", says: []string{"p.yaml:2:25"},
		},
		"strict about underscores": {
			options: policy.Options{Strict: true},
			text: "unions: [{name: ^un_ion, resourceTypes: [foo]}]\n" +
				"resourceTypes: [{name: ^b_z, idPrefix: permbaz, relationships: [{relation: ^ow_n, targetTypes: [un_ion]}]}]\n" +
				strings.ReplaceAll(bazGet, "baz", "b_z"),
			want: "W-UNDERSCORE W-UNDERSCORE W-UNDERSCORE",
		},
	}
}

func duplicates() map[string]invalidPolicy {
	return map[string]invalidPolicy{
		"type twice":             {text: "resourceTypes: [{name: ^foo, idPrefix: permbaz}]", want: "E-DUP-TYPE", says: []string{"p.yaml:2:10"}},
		"type twice, the same":   {text: "resourceTypes: [{name: ^bar, idPrefix: permbar}]", want: "E-DUP-TYPE"},
		"action twice":           {text: "actions: [{name: ^get}]", want: "E-DUP-ACTION", says: []string{"p.yaml:4:18"}},
		"union twice":            {text: "unions: [{name: u, resourceTypes: [foo]}, {name: ^u, resourceTypes: [bar]}]\n" + bazTo("via", "u"), want: "E-DUP-UNION", says: []string{"p.yaml:9:17"}},
		"union named as a type":  {text: "unions: [{name: ^foo, resourceTypes: [bar]}]", want: "E-TYPE-IS-UNION", says: []string{"p.yaml:2:10"}},
		"relation twice":         {text: bazTo("via, targetTypes: [foo]}, {relation: ^via", "bar"), want: "E-DUP-RELATION"},
		"relation twice, so too": {text: bazTo("via, targetTypes: [bar]}, {relation: ^via", "bar"), want: "E-DUP-RELATION"},
		"member twice":           {text: "unions: [{name: u, resourceTypes: [foo, ^foo]}]\n" + bazTo("via", "u"), want: "E-DUP-MEMBER"},
		"target twice":           {text: bazTo("via", "bar, ^bar"), want: "E-DUP-TARGET"},
		"target in a union too":  {text: "unions: [{name: u, resourceTypes: [foo, bar]}]\n" + bazTo("via", "^foo, u") + bazGet, want: "W-REDUNDANT-TARGET"},
		"union in a union":       {text: overlap + bazTo("via", "^v, u") + bazGet, want: "W-REDUNDANT-TARGET"},
		"binding twice": {
			text: "actionBindings: [^{actionName: get, typeName: foo, conditions: [{roleBinding: {}}]}]", want: "E-DUP-BINDING", says: []string{"p.yaml:7:3", `"get" is bound to "foo"`},
		},
		"binding of a union and of its member": {
			text: "unions: [{name: u, resourceTypes: [bar]}]\nactionBindings: [^{actionName: get, typeName: u, conditions: [{roleBinding: {}}]}]",
			want: "E-DUP-BINDING", says: []string{`here on "u", and on "bar"`, "p.yaml:6:3"},
		},
		"bindings of two unions with one member": {
			text: put + overlap + "actionBindings: [{actionName: put, typeName: u, conditions: [{roleBinding: {}}]}, ^{actionName: put, typeName: v, conditions: [{roleBinding: {}}]}]",
			want: "E-DUP-BINDING", says: []string{`"put" is bound to "bar"`, "p.yaml:11:18"},
		},
		"roleBinding twice":        {text: putFoo + "[{roleBinding: {}}, ^{roleBinding: {}}]}]", want: "E-DUP-CONDITION"},
		"relationshipAction twice": {text: putFoo + "[{relationshipAction: " + viaOwn + "}, {relationshipAction: ^" + viaOwn + "}]}]", want: "E-DUP-CONDITION"},
	}
}

func references() map[string]invalidPolicy {
	return map[string]invalidPolicy{
		"unknown member":                 {text: "unions: [{name: u, resourceTypes: [foo, ^qux]}]\n" + bazTo("via", "u"), want: "E-UNKNOWN-TYPE"},
		"union of a union":               {text: "unions: [{name: u, resourceTypes: [foo, ^v]}, {name: v, resourceTypes: [bar]}]\n" + bazTo("via", "u, v"), want: "E-UNION-OF-UNION"},
		"union of itself":                {text: "unions: [{name: u, resourceTypes: [foo, ^u]}]\n" + bazTo("via", "u"), want: "E-UNION-OF-UNION"},
		"empty union":                    {text: "unions: [^{name: u, resourceTypes: []}]", want: "E-EMPTY-UNION"},
		"unknown target":                 {text: bazTo("via", "^qux"), want: "E-UNKNOWN-TYPE"},
		"no targets":                     {text: strings.Replace(bazTo("via", ""), "{relation", "^{relation", 1), want: "E-NO-TARGETS"},
		"binding of no action":           {text: "actionBindings: [^{typeName: foo, conditions: [{roleBinding: {}}]}]", want: "E-MISSING", says: []string{"actionName"}},
		"binding of no type":             {text: "actionBindings: [^{actionName: get, conditions: [{roleBinding: {}}]}]", want: "E-MISSING", says: []string{"typeName"}},
		"binding of an unknown action":   {text: "actionBindings: [{actionName: ^put, typeName: foo, conditions: [{roleBinding: {}}]}]", want: "E-UNKNOWN-ACTION"},
		"binding of an unknown type":     {text: "actionBindings: [{actionName: get, typeName: ^qux, conditions: [{roleBinding: {}}]}]", want: "E-UNKNOWN-TYPE"},
		"no conditions":                  {text: put + "actionBindings: [^{actionName: put, typeName: foo}]", want: "E-NO-CONDITIONS"},
		"empty list of conditions":       {text: put + "actionBindings: [^{actionName: put, typeName: foo, conditions: []}]", want: "E-NO-CONDITIONS"},
		"condition of nothing":           {text: putFoo + "[^{}]}]", want: "E-CONDITION", says: []string{"neither"}},
		"condition of both":              {text: putFoo + "[^{roleBinding: {}, relationshipAction: " + viaOwn + "}]}]", want: "E-CONDITION", says: []string{"both"}},
		"roleBinding with nothing":       {text: putFoo + "[{roleBinding: ^}]}]", want: "E-KIND", says: []string{"write `roleBinding: {}`"}},
		"roleBinding of something":       {text: putFoo + "[{roleBinding: {^role: x}}]}]", want: "E-UNKNOWN-KEY"},
		"roleBinding is enough":          {text: putFoo + "[{roleBinding: {}}]}]"},
		"relationshipAction is enough":   {text: putFoo + "[{relationshipAction: " + viaOwn + "}]}]"},
		"unknown relation":               {text: putFoo + "[{relationshipAction: ^{relation: owns, actionName: get}}]}]", want: "E-UNKNOWN-RELATION"},
		"no relation":                    {text: putFoo + "[{relationshipAction: ^{actionName: get}}]}]", want: "E-MISSING", says: []string{"relation"}},
		"no action of the relation":      {text: putFoo + "[{relationshipAction: ^{relation: own}}]}]", want: "E-MISSING", says: []string{"actionName"}},
		"unknown action of the relation": {text: putFoo + "[{relationshipAction: {relation: own, actionName: ^cut}}]}]", want: "E-UNKNOWN-ACTION"},
		"action that the target has not": {text: putFoo + "[{roleBinding: {}}, {relationshipAction: ^{relation: own, actionName: put}}]}]", want: "E-ACTION-NOT-ON-TARGET", says: []string{`"foo" via "own" to "bar"`}},
		"action that the target has not, though it has the binding's": {
			text: "actions: [{name: put}, {name: cut}]\nactionBindings: [{actionName: put, typeName: bar, conditions: [{roleBinding: {}}]}, " +
				"{actionName: put, typeName: foo, conditions: [{relationshipAction: ^{relation: own, actionName: cut}}]}, " +
				"{actionName: cut, typeName: foo, conditions: [{roleBinding: {}}]}]",
			want: "E-ACTION-NOT-ON-TARGET", says: []string{`"cut" is not bound where the relation leads: "foo" via "own" to "bar"`},
		},
		"action that the target has, though not the binding's": {text: putFoo + "[{relationshipAction: " + viaOwn + "}]}]"},
		"relation of another type": {
			text: put + "actionBindings: [{actionName: put, typeName: bar, conditions: [{relationshipAction: ^" + viaOwn + "}]}]", want: "E-UNKNOWN-RELATION", says: []string{`not on "bar"`},
		},
		"relation of one member of two": {
			text: put + "unions: [{name: u, resourceTypes: [foo, bar]}]\n" +
				"actionBindings: [{actionName: put, typeName: u, conditions: [{roleBinding: {}}, {relationshipAction: ^" + viaOwn + "}]}]",
			want: "E-UNKNOWN-RELATION", says: []string{`not on "bar"`},
		},
		"action that one target of two has not": {
			text: bazTo("via", "bar, foo") + put + "actionBindings: [{actionName: put, typeName: bar, conditions: [{roleBinding: {}}]}, " +
				"{actionName: put, typeName: baz, conditions: [{relationshipAction: ^{relation: via, actionName: put}}]}]",
			want: "E-ACTION-NOT-ON-TARGET", says: []string{`leads: "baz" via "via" to "foo"`},
		},
		"action that one member of a union has not": {
			text: "unions: [{name: u, resourceTypes: [bar, foo]}]\n" + bazTo("via", "u") + put + "actionBindings: [{actionName: put, typeName: bar, conditions: [{roleBinding: {}}]}, " +
				"{actionName: put, typeName: baz, conditions: [{relationshipAction: ^{relation: via, actionName: put}}]}]",
			want: "E-ACTION-NOT-ON-TARGET", says: []string{`leads: "baz" via "via" to "foo"`},
		},
	}
}

func collisions() map[string]invalidPolicy {
	return map[string]invalidPolicy{
		"relation named as an action": {
			alone: strings.Replace(base, "own", "^own", 1) + "---\nactions: [{name: own}]\nactionBindings: [{actionName: own, typeName: foo, conditions: [{roleBinding: {}}]}]",
			want:  "E-COLLISION", says: []string{"p.yaml:10:18"},
		},
		"relation named as an action elsewhere": {text: "actions: [{name: own}]\nactionBindings: [{actionName: own, typeName: bar, conditions: [{roleBinding: {}}]}]"},
		"relation named as role bindings":       {text: bazTo("^get_role", "foo") + bazGet, want: "E-COLLISION", says: []string{"role bindings"}},
		"so named, but nothing by roles": {
			text: bazTo("get_role", "foo") + "actionBindings: [{actionName: get, typeName: baz, conditions: [{relationshipAction: {relation: get_role, actionName: get}}]}]",
		},
		"action named as role bindings": {
			text: "actions: [{name: get_role}]\nactionBindings: [^{actionName: get_role, typeName: foo, conditions: [{roleBinding: {}}]}]", want: "E-COLLISION", says: []string{"p.yaml:7:3"},
		},
		"action so named elsewhere": {text: "actions: [{name: get_role}]\n" + baz + strings.ReplaceAll(bazGet, "get", "get_role")},
		"another suffix": {
			options: policy.Options{RoleSuffix: "_rel"},
			text: "actions: [{name: get_rel}, {name: get_role}]\nactionBindings: [{actionName: get_role, typeName: foo, conditions: [{roleBinding: {}}]}, " +
				"^{actionName: get_rel, typeName: foo, conditions: [{roleBinding: {}}]}]",
			want: "E-COLLISION",
		},
		"role without subject": {text: "resourceTypes: [{name: ^role, idPrefix: permrol}]", want: "E-ROLE"},
		"role with subject":    {text: "resourceTypes: [{name: role, idPrefix: permrol, relationships: [{relation: subject, targetTypes: [foo]}]}]"},
		"role by other names":  {text: "resourceTypes: [{name: ^foo_role, idPrefix: permrol}]", options: policy.Options{RoleType: "foo_role"}, want: "E-ROLE"},
		"union named role":     {text: "unions: [{name: ^role, resourceTypes: [foo]}]\n" + bazTo("via", "role"), want: "E-ROLE"},
		"union named user":     {text: "unions: [{name: ^user, resourceTypes: [foo]}]\n" + bazTo("via", "user"), want: "E-ROLE"},
		"user declared":        {text: "resourceTypes: [{name: user, idPrefix: permuse}]"},
		"no such option":       {options: policy.Options{RoleType: "Role"}, want: "E-OPTION"},
	}
}

func warnings() map[string]invalidPolicy {
	return map[string]invalidPolicy{
		"nothing but the base": {},
		"unused action":        {text: "actions: [{name: ^put}]", want: "W-UNUSED-ACTION"},
		"unused union":         {text: "unions: [{name: ^u, resourceTypes: [foo]}]", want: "W-UNUSED-UNION"},
		"unused type":          {text: strings.Replace(baz, "baz", "^baz", 1), want: "W-UNUSED-TYPE"},
		"action of nobody": {
			text: bazTo("via", "baz") + put + "actionBindings: [^{actionName: put, typeName: baz, conditions: [{relationshipAction: {relation: via, actionName: put}}]}]",
			want: "W-NEVER-GRANTED", says: []string{`"put" on "baz"`},
		},
		"action of somebody far away": {
			text: bazTo("via", "baz, foo") + put + "actionBindings: [{actionName: put, typeName: baz, conditions: [{relationshipAction: {relation: via, actionName: put}}]}, " +
				"{actionName: put, typeName: foo, conditions: [{relationshipAction: {relation: own, actionName: put}}]}, {actionName: put, typeName: bar, conditions: [{roleBinding: {}}]}]",
		},
		"action of somebody through a union": {
			text: "unions: [{name: u, resourceTypes: [baz, foo]}]\n" + bazTo("via", "u") + put +
				"actionBindings: [{actionName: put, typeName: baz, conditions: [{relationshipAction: {relation: via, actionName: put}}]}, " +
				"{actionName: put, typeName: foo, conditions: [{relationshipAction: {relation: own, actionName: get}}]}]",
		},
		"action of nobody through a union": {
			text: "unions: [{name: u, resourceTypes: [baz, qux]}]\n" + put +
				"resourceTypes: [{name: baz, idPrefix: permbaz, relationships: [{relation: via, targetTypes: [u]}]}, " +
				"{name: qux, idPrefix: permqux, relationships: [{relation: via, targetTypes: [u]}]}]\n" +
				"actionBindings: [^{actionName: put, typeName: u, conditions: [{relationshipAction: {relation: via, actionName: put}}]}]",
			want: "W-NEVER-GRANTED", says: []string{`on "baz", "qux"`},
		},
		"nothing at all":    {alone: "\n", want: "E-EMPTY"},
		"marks only":        {alone: "---\n---\n# nothing\n", want: "E-EMPTY"},
		"actions only":      {alone: "actions: [{name: get}]", want: "E-EMPTY"},
		"an empty document": {text: "---\n---\n"},
	}
}

func TestInvalidNamesAreReportedWithPlace(t *testing.T)    { testRefusals(t, names()) }
func TestDuplicatesAreReportedWithBothPlaces(t *testing.T) { testRefusals(t, duplicates()) }
func TestUnknownReferencesAreReported(t *testing.T)        { testRefusals(t, references()) }
func TestNameCollisionsAreReported(t *testing.T)           { testRefusals(t, collisions()) }
func TestDeclarationsWithoutEffectAreWarned(t *testing.T)  { testRefusals(t, warnings()) }

// bazTo declares type baz with a relation and without bindings.
func bazTo(relation, targets string) string {
	return "resourceTypes: [{name: baz, idPrefix: permbaz, relationships: [{relation: " + relation + ", targetTypes: [" + targets + "]}]}]\n"
}
