package policy

import (
	"maps"
	"slices"
	"strings"
)

// Codes returns all codes, sorted.
func Codes() []Code { return slices.Sorted(maps.Keys(descriptions())) }

// Description describes the findings with the code; it is empty for an unknown code.
func (c Code) Description() string { return descriptions()[c] }

// Help returns the URL of the documentation of the code.
func (c Code) Help() string {
	return "https://github.com/entail-dev/entail/blob/main/docs/reference/policy-codes.md#" + strings.ToLower(string(c))
}

func descriptions() map[Code]string {
	return map[Code]string{
		CodeSyntax:              "The file is not YAML.",
		CodeEncoding:            "The file has bytes or characters that YAML does not allow, or that end lines for YAML alone.",
		CodeLimit:               "There is more than is read, or than a custom resource takes: it is refused as a whole.",
		CodeKind:                "A value is of another kind than the language has there, such as a text in the place of a list.",
		CodeUnknownKey:          "The language has no such key.",
		CodeDupKey:              "A key is given twice.",
		CodeManifest:            "A manifest is in a form that files may have, and the custom resource may not.",
		CodeFormat:              "The file cannot be formatted without loss.",
		CodeUnformatted:         "The file is not as `entail policy fmt` writes it.",
		CodeEmpty:               "No document declares a resource type.",
		CodeOption:              "An option has a value that cannot be.",
		CodeMissing:             "Something that must be there is missing.",
		CodeName:                "A name has characters that names cannot have.",
		CodeIDPrefix:            "An idPrefix is not of three or more lower-case letters and digits.",
		CodeDupType:             "Two resource types have one name.",
		CodeDupUnion:            "Two unions have one name.",
		CodeDupAction:           "An action is declared twice.",
		CodeDupRelation:         "A type has two relationships of one name.",
		CodeDupIDPrefix:         "Two types have one idPrefix.",
		CodeDupMember:           "A union lists a type twice.",
		CodeDupTarget:           "A relation lists a target twice.",
		CodeDupBinding:          "An action is bound to a type twice, by its name or by unions.",
		CodeDupCondition:        "A binding has a condition twice.",
		CodeTypeIsUnion:         "A type and a union have one name.",
		CodeUnknownType:         "Nobody declares the type.",
		CodeUnknownAction:       "Nobody declares the action.",
		CodeUnknownRelation:     "The type has no such relation.",
		CodeUnionOfUnion:        "A union is a member of another: only types may be.",
		CodeEmptyUnion:          "A union has no members.",
		CodeNoTargets:           "A relation leads nowhere.",
		CodeNoConditions:        "A binding has no conditions, so nobody would be allowed.",
		CodeCondition:           "A condition has none or several of the keys of which it needs one.",
		CodeActionNotOnTarget:   "A step asks for an action that is not bound to all that its relation leads to.",
		CodeCollision:           "Two things of a type would have one name in an engine.",
		CodeRole:                "The type of roles or subjects is not what it has to be.",
		CodeRedundantTarget:     "A target is there already, through a union.",
		CodeNeverGranted:        "No role binding is on any way to the action: nobody can ever have it.",
		CodeUnusedAction:        "No binding has the action.",
		CodeUnusedUnion:         "Nothing refers to the union.",
		CodeUnusedType:          "Nothing is bound to the type, and nothing refers to it.",
		CodeUnderscore:          "A name has an underscore, which the strict grammar does not have.",
		CodeMoreWarnings:        "There are more warnings than are listed.",
		CodeSpiceDBName:         "SpiceDB does not take the name.",
		CodeSpiceDBKeyword:      "The name is a word of SpiceDB's language.",
		CodeSpiceDBSize:         "The schema is larger than SpiceDB takes.",
		CodeOpenFGAName:         "OpenFGA does not take the name.",
		CodeOpenFGAKeyword:      "The name is a word of OpenFGA's language.",
		CodeOpenFGATypes:        "There are more types than OpenFGA takes.",
		CodeOpenFGASize:         "The model is larger than OpenFGA takes.",
		CodeOpenFGANoEntrypoint: "Nobody can ever have the action, which OpenFGA refuses.",
		CodeOneMemberUnion:      "A union has one member: its name could stand for itself.",
		CodeVerbs:               "An action is missing that most other groups of actions have.",
		CodeDeepRecursion:       "A recursion may go deeper than engines follow it.",
		CodeNearLimit:           "Something comes near to a limit of OpenFGA.",
		CodeRepeatedBinding:     "Bindings say the same of many types: a union would say it once.",
	}
}
