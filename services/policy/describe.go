package policy

import (
	"maps"
	"slices"
	"strings"
)

// AllCodes returns all codes, sorted.
func AllCodes() []Code { return slices.Sorted(maps.Keys(codeDescriptions())) }

// Description describes the findings with the code; it is empty for an unknown code.
func (c Code) Description() string { return codeDescriptions()[c] }

// HelpURL returns the URL of the documentation of the code.
func (c Code) HelpURL() string {
	return "https://github.com/entail-dev/entail/blob/main/docs/reference/policy-codes.md#" + strings.ToLower(string(c))
}

func codeDescriptions() map[Code]string {
	return map[Code]string{
		CodeSyntax:              "The file is not YAML.",
		CodeEncoding:            "The file has bytes or characters that YAML does not allow, or line ends that only YAML recognizes.",
		CodeLimit:               "The file is larger than Entail or a custom resource accepts. All of it is refused.",
		CodeKind:                "A value has the wrong type, such as a text where a list is expected.",
		CodeUnknownKey:          "The language has no such key.",
		CodeDupKey:              "A key is given twice.",
		CodeManifest:            "A manifest has a form that only plain files may have.",
		CodeFormat:              "The file cannot be formatted without loss.",
		CodeUnformatted:         "The file differs from the output of `entail policy fmt`.",
		CodeEmpty:               "No document declares a resource type.",
		CodeOption:              "An option has an invalid value.",
		CodeMissing:             "A required key is missing.",
		CodeName:                "A name has characters that are not allowed in names.",
		CodeIDPrefix:            "An idPrefix needs at least three lower-case letters or digits, and nothing else.",
		CodeDupType:             "Two resource types have one name.",
		CodeDupUnion:            "Two unions have one name.",
		CodeDupAction:           "An action is declared twice.",
		CodeDupRelation:         "A type has two relationships with the same name.",
		CodeDupIDPrefix:         "Two types have one idPrefix.",
		CodeDupMember:           "A union lists a type twice.",
		CodeDupTarget:           "A relation lists a target twice.",
		CodeDupBinding:          "An action is bound to a type twice, by its name or by unions.",
		CodeDupCondition:        "A binding has a condition twice.",
		CodeTypeIsUnion:         "A type and a union have one name.",
		CodeUnknownType:         "No document declares the type.",
		CodeUnknownAction:       "No document declares the action.",
		CodeUnknownRelation:     "The type has no such relation.",
		CodeUnionOfUnion:        "A union is a member of another union. Only types may be members.",
		CodeEmptyUnion:          "A union has no members.",
		CodeNoTargets:           "A relation has no target types.",
		CodeNoConditions:        "A binding has no conditions, so nobody would be allowed.",
		CodeCondition:           "A condition needs either roleBinding or relationshipAction, and has none or both.",
		CodeActionNotOnTarget:   "A relationshipAction asks for an action that is not bound to every target of its relation.",
		CodeCollision:           "Two actions or relations of a type would get the same name in OpenFGA or SpiceDB.",
		CodeRole:                "The name of the type of roles or subjects is invalid.",
		CodeRedundantTarget:     "A target is listed already, through a union.",
		CodeNeverGranted:        "No role binding leads to the action, so nobody can ever have it.",
		CodeUnusedAction:        "No binding has the action.",
		CodeUnusedUnion:         "Nothing refers to the union.",
		CodeUnusedType:          "No action is bound to the type, and nothing refers to it.",
		CodeUnderscore:          "A name has an underscore, which the strict grammar does not allow.",
		CodeMoreWarnings:        "There are more warnings than the list shows.",
		CodeSpiceDBName:         "SpiceDB does not accept the name.",
		CodeSpiceDBKeyword:      "The name is a word of SpiceDB's language.",
		CodeSpiceDBSize:         "The schema is larger than SpiceDB accepts.",
		CodeOpenFGAName:         "OpenFGA does not accept the name.",
		CodeOpenFGAKeyword:      "The name is a word of OpenFGA's language.",
		CodeOpenFGATypes:        "There are more types than OpenFGA accepts.",
		CodeOpenFGASize:         "The model is larger than OpenFGA accepts.",
		CodeOpenFGANoEntrypoint: "Nobody can ever have the action. OpenFGA refuses such a model.",
		CodeOneMemberUnion:      "A union has one member. Use the member instead.",
		CodeVerbs:               "A group of actions lacks an action that most other groups have.",
		CodeDeepRecursion:       "A relation leads through its own type, perhaps deeper than the engines follow.",
		CodeNearLimit:           "The policy is close to a limit of OpenFGA.",
		CodeRepeatedBinding:     "The same bindings are repeated for many types. A union would replace them.",
	}
}
