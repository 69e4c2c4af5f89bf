package policy

// Code identifies a kind of finding. Its meaning never changes, because users search for it and tools filter by it.
type Code string

// Errors in files.
const (
	CodeSyntax     Code = "E-SYNTAX"
	CodeEncoding   Code = "E-ENCODING"
	CodeLimit      Code = "E-LIMIT"
	CodeKind       Code = "E-KIND"
	CodeUnknownKey Code = "E-UNKNOWN-KEY"
	CodeDupKey     Code = "E-DUP-KEY"
	CodeManifest   Code = "E-MANIFEST"
	CodeFormat     Code = "E-FORMAT"
	// CodeUnformatted marks files that package format would change.
	CodeUnformatted Code = "E-UNFORMATTED"
)

// Errors in policies.
const (
	CodeEmpty             Code = "E-EMPTY"
	CodeOption            Code = "E-OPTION"
	CodeMissing           Code = "E-MISSING"
	CodeName              Code = "E-NAME"
	CodeIDPrefix          Code = "E-ID-PREFIX"
	CodeDupType           Code = "E-DUP-TYPE"
	CodeDupUnion          Code = "E-DUP-UNION"
	CodeDupAction         Code = "E-DUP-ACTION"
	CodeDupRelation       Code = "E-DUP-RELATION"
	CodeDupIDPrefix       Code = "E-DUP-ID-PREFIX"
	CodeDupMember         Code = "E-DUP-MEMBER"
	CodeDupTarget         Code = "E-DUP-TARGET"
	CodeDupBinding        Code = "E-DUP-BINDING"
	CodeDupCondition      Code = "E-DUP-CONDITION"
	CodeTypeIsUnion       Code = "E-TYPE-IS-UNION"
	CodeUnknownType       Code = "E-UNKNOWN-TYPE"
	CodeUnknownAction     Code = "E-UNKNOWN-ACTION"
	CodeUnknownRelation   Code = "E-UNKNOWN-RELATION"
	CodeUnionOfUnion      Code = "E-UNION-OF-UNION"
	CodeEmptyUnion        Code = "E-EMPTY-UNION"
	CodeNoTargets         Code = "E-NO-TARGETS"
	CodeNoConditions      Code = "E-NO-CONDITIONS"
	CodeCondition         Code = "E-CONDITION"
	CodeActionNotOnTarget Code = "E-ACTION-NOT-ON-TARGET"
	CodeCollision         Code = "E-COLLISION"
	CodeRole              Code = "E-ROLE"
)

// Warnings about policies.
const (
	CodeRedundantTarget Code = "W-REDUNDANT-TARGET"
	CodeNeverGranted    Code = "W-NEVER-GRANTED"
	CodeUnusedAction    Code = "W-UNUSED-ACTION"
	CodeUnusedUnion     Code = "W-UNUSED-UNION"
	CodeUnusedType      Code = "W-UNUSED-TYPE"
	CodeUnderscore      Code = "W-UNDERSCORE"
	CodeMoreWarnings    Code = "W-LIMIT"
)

// Errors of one engine in valid policies.
const (
	CodeSpiceDBName         Code = "E-SPICEDB-NAME"
	CodeSpiceDBKeyword      Code = "E-SPICEDB-KEYWORD"
	CodeSpiceDBSize         Code = "E-SPICEDB-SIZE"
	CodeOpenFGAName         Code = "E-OPENFGA-NAME"
	CodeOpenFGAKeyword      Code = "E-OPENFGA-KEYWORD"
	CodeOpenFGATypes        Code = "E-OPENFGA-TYPES"
	CodeOpenFGASize         Code = "E-OPENFGA-SIZE"
	CodeOpenFGANoEntrypoint Code = "E-OPENFGA-NO-ENTRYPOINT"
)

// Warnings of package lint.
const (
	CodeOneMemberUnion  Code = "W-ONE-MEMBER-UNION"
	CodeVerbs           Code = "W-VERBS"
	CodeDeepRecursion   Code = "W-DEEP-RECURSION"
	CodeNearLimit       Code = "W-NEAR-LIMIT"
	CodeRepeatedBinding Code = "W-REPEATED-BINDING"
)
