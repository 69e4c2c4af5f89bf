package model

import (
	"errors"
	"fmt"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
)

// parsedModule is one parsed module, or one part of a last live text.
type parsedModule struct {
	Module
	// source is the text that the parser read.
	source normalizedText
	// name is the name in the header.
	name string
	// live is the module's last live text, or nil. settled means that the module still has this text.
	live    *parsedModule
	settled bool
	// parts are the definitions of the last live text, each as a unit of its own. For such a part, whole is the unit
	// that it replaces. host is the type of its relation, if the text defines that type.
	parts       []*parsedModule
	whole, host *parsedModule
	// index is the position in the graph.
	index int
	// original is the earlier unit with the same normalized text, or nil. If it is set, the fields below are not.
	original *parsedModule
	// broken is the reason if the module cannot live beside any other modules, else "". exceeds means that the reason
	// is a lack of room.
	broken  string
	exceeds bool
	// types are the types that the module defines, extensions its additions to types of other modules.
	types, extensions []*openfgav1.TypeDefinition
	conditions        map[string]*openfgav1.Condition
	// claims holds the definitions of the module, which no other module may define.
	claims map[definitionName]relationDefinition
	// needs are the names that must be defined for the module to live.
	needs []definitionNeed
}

// parseModuleText parses the source of a module.
func parseModuleText(source normalizedText, limits Limits) *parsedModule {
	u := &parsedModule{source: source}
	if u.broken = limits.unreadableReason(source); u.broken != "" {
		return u
	}
	keyword, rest := cutFirstWord(source.lines[0])
	switch keyword {
	case "model":
		u.broken = "the source is a whole model, not a module: replace `model` and `schema` by `module <name>`"
		return u
	case "module":
		u.name, _ = cutFirstWord(rest)
	}
	parsed, extensions, err := parseDSL(source.String())
	if err != nil {
		u.broken = source.explainParseError(err)
		return u
	}
	for _, t := range parsed.GetTypeDefinitions() {
		normalizeParsedType(t)
		if extensions[t.GetType()] == t {
			u.extensions = append(u.extensions, t)
		} else {
			u.types = append(u.types, t)
		}
	}
	u.conditions = parsed.GetConditions()
	if u.broken = u.collectClaimsAndNeeds(); u.broken == "" {
		u.broken = u.apiRefusalReason(limits)
	}
	return u
}

// parseDSL runs OpenFGA's parser. Its listener can panic on the remains of a syntax error, which counts as a syntax
// error.
func parseDSL(text string) (
	parsed *openfgav1.AuthorizationModel, extensions map[string]*openfgav1.TypeDefinition, err error,
) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the DSL is so malformed that OpenFGA's parser crashed: correct it or shorten it until it parses: %v", r)
		}
	}()
	return transformer.TransformModularDSLToProto(text)
}

// normalizeParsedType makes a parsed type equal to one decoded from the wire. The parser leaves the message for `[type]` nil.
func normalizeParsedType(t *openfgav1.TypeDefinition) {
	for _, rewrite := range t.GetRelations() {
		forEachRewrite(rewrite, func(node *openfgav1.Userset) {
			if this, ok := node.GetUserset().(*openfgav1.Userset_This); ok {
				this.This = &openfgav1.DirectUserset{}
			}
		})
	}
}

// normalizedText is a source without empty lines, comments and trailing space. Modules of equal normalized text are
// duplicates. The parser reads only this text, because its time grows with the third power of the empty lines in a row.
type normalizedText struct {
	lines []string
	// numbers are the numbers of the lines in the source, counted from one.
	numbers []int
}

func normalizeText(source string) normalizedText {
	var e normalizedText
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n").Replace(source)
	for i, line := range strings.Split(source, "\n") {
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimRight(line, " \t")
		if start := strings.TrimLeft(line, " \t"); start != "" && start[0] != '#' {
			e.lines = append(e.lines, line)
			e.numbers = append(e.numbers, i+1)
		}
	}
	return e
}

// String returns the lines as one text.
func (e normalizedText) String() string { return strings.Join(e.lines, "\n") + "\n" }

// explainParseError converts the parser's errors into one message about the source. The parser counts lines and columns from
// zero.
func (e normalizedText) explainParseError(err error) string {
	var many *transformer.OpenFgaDslSyntaxMultipleError
	if !errors.As(err, &many) {
		return oneLine(err.Error())
	}
	var all problemMessages
	for _, one := range many.Errors {
		var line, column int
		text := one.Error()
		_, what, _ := strings.Cut(text, ": ")
		if n, _ := fmt.Sscanf(text, "syntax error at line=%d, column=%d:", &line, &column); n == 2 {
			text = fmt.Sprintf("%ssyntax error: %s", sourcePosition{e.numbers[min(line, len(e.numbers)-1)], column + 1}, what)
		}
		all.addProblem(text)
	}
	return all.String()
}

// sourcePosition is a line and a column of a source, both counted from one. The zero place is unknown.
type sourcePosition struct{ line, column int }

// String returns the place as the beginning of a message.
func (p sourcePosition) String() string {
	if p.line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d:%d: ", p.line, p.column)
}

// positionOfDefinition returns the place at which a source defines n, or begins to extend it. It reads the DSL line by line, which is
// enough for a source that parses.
func (e normalizedText) positionOfDefinition(n definitionName) sourcePosition {
	current := "" // the type whose relations the lines define
	for i, line := range e.lines {
		keyword, rest := cutFirstWord(line)
		if keyword == "extend" {
			keyword, rest = cutFirstWord(rest)
		}
		subject, after := cutFirstWord(rest)
		here := definitionName{}
		switch keyword {
		case "type":
			current, here = subject, definitionName{typ: subject}
		case "define":
			here = definitionName{typ: current, rel: subject}
		case "condition":
			here = definitionName{cond: subject}
		}
		if here == n {
			return sourcePosition{e.numbers[i], len(line) - len(after) - len(subject) + 1}
		}
	}
	return sourcePosition{}
}

// cutFirstWord splits off the first word, which ends at white space, a colon or a parenthesis.
func cutFirstWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t")
	if end := strings.IndexAny(s, " \t:("); end >= 0 {
		return s[:end], s[end:]
	}
	return s, ""
}

// InvalidTextReason returns why no model can hold a text, whatever the other modules are. It returns "" if a model can.
func InvalidTextReason(text string, limits Limits) string {
	return parseModuleText(normalizeText(text), limits).broken
}
