package model

import (
	"fmt"
	"strings"
	"unicode/utf8"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
)

// Limits bound a store's model. Zero fields stand for OpenFGA's defaults.
type Limits struct {
	// Types bounds the number of types. The default is 100.
	Types int
	// Bytes bounds the size of the model in protobuf, and of one module's source. The default is 256 KiB.
	Bytes int
}

const (
	defaultTypes = 100
	defaultBytes = 256 << 10
	// maxConditions bounds the conditions of a model. OpenFGA's API fixes it.
	maxConditions = 25
	// idBytes is the size of the id that the server adds before it measures: a tag, a length and a ULID.
	idBytes = 28

	// maxNesting bounds the recursion of the parser.
	maxNesting = 32
	// maxLookahead bounds the work of the parser, which reads a whole parenthesised group again at each of its levels.
	maxLookahead = 1 << 19
	// maxLineBytes bounds the work of the parser after an error, which is quadratic in the length of the line.
	maxLineBytes = 8 << 10
	// maxConditionBytes bounds the conditions of one module. The parser's time is quadratic in the length of an
	// expression.
	maxConditionBytes = 16 << 10
)

// OrDefault returns the limits with the defaults in place of zeros.
func (l Limits) OrDefault() Limits {
	if l.Types <= 0 {
		l.Types = defaultTypes
	}
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	return l
}

// LimitError means that the merged model is larger than OpenFGA accepts. No single module is at fault, so none is
// rejected.
type LimitError struct {
	Types, MaxTypes           int
	Conditions, MaxConditions int
	Bytes, MaxBytes           int
}

// Error implements error.
func (e *LimitError) Error() string {
	var over []string
	for _, count := range []struct {
		what      string
		have, max int
	}{
		{"types", e.Types, e.MaxTypes},
		{"conditions", e.Conditions, e.MaxConditions},
		{"bytes", e.Bytes, e.MaxBytes},
	} {
		if count.have > count.max {
			over = append(over, fmt.Sprintf("%d %s, of at most %d", count.have, count.what, count.max))
		}
	}
	return fmt.Sprintf("the merged model is too large: %s; remove modules from the store, "+
		"or raise the limits of types and bytes both here and in OpenFGA", strings.Join(over, " and "))
}

// checkModelSize returns a LimitError if OpenFGA would refuse the model for its size.
func (l Limits) checkModelSize(m *openfgav1.AuthorizationModel) error {
	if e := l.measureModel(m); e.Types > e.MaxTypes || e.Conditions > e.MaxConditions || e.Bytes > e.MaxBytes {
		return e
	}
	return nil
}

func (l Limits) measureModel(m *openfgav1.AuthorizationModel) *LimitError {
	return &LimitError{
		Types: len(m.GetTypeDefinitions()), MaxTypes: l.Types,
		Conditions: len(m.GetConditions()), MaxConditions: maxConditions,
		Bytes: proto.Size(m) + idBytes, MaxBytes: l.Bytes,
	}
}

// unreadableReason returns why a source must not even reach the parser, or "".
func (l Limits) unreadableReason(e normalizedText) string {
	text := e.String()
	switch {
	case len(e.lines) == 0:
		return "the module is empty: write DSL that starts with `module <name>`"
	case len(text) > l.Bytes:
		return fmt.Sprintf("the module has %d bytes, of at most %d: split it or shorten it", len(text), l.Bytes)
	case !utf8.ValidString(text):
		return "the module is not valid UTF-8: save it as UTF-8"
	}
	if n := e.conditionBytes(); n > maxConditionBytes {
		return fmt.Sprintf("the conditions of the module have %d bytes, of at most %d: shorten them or split the module",
			n, maxConditionBytes)
	}
	return e.tooComplexReason()
}

// conditionBytes returns the size of the conditions. The grammar requires all of them after the types.
func (e normalizedText) conditionBytes() int {
	sum := 0
	for _, line := range e.lines {
		if sum > 0 || strings.HasPrefix(strings.TrimLeft(line, " \t"), "condition") {
			sum += len(line) + 1
		}
	}
	return sum
}

// tooComplexReason returns where a line is too long for the parser, or brackets are nested too deeply or too often. It returns
// "" if none is.
func (e normalizedText) tooComplexReason() string {
	depth, groups, lookahead := 0, 0, 0
	for i, line := range e.lines {
		if len(line) > maxLineBytes {
			return fmt.Sprintf("line %d has %d bytes, of at most %d: "+
				"give parts of the definition names, as relations of their own", e.numbers[i], len(line), maxLineBytes)
		}
		for _, r := range line {
			switch r {
			case '(':
				depth, groups = depth+1, groups+1
			case ')':
				depth, groups = max(depth-1, 0), max(groups-1, 0)
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
			lookahead += groups * groups
			if depth > maxNesting || lookahead > maxLookahead {
				return fmt.Sprintf("line %d: too many brackets inside brackets: "+
					"give the inner parts names, as relations of their own", e.numbers[i])
			}
		}
	}
	return ""
}
