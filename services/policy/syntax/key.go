package syntax

import (
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/internal/tree"
	"github.com/entail-dev/entail/services/policy/internal/words"
)

// maxFields is the largest number of keys of a mapping of the language.
const maxFields = 4

// decodeMapping returns the values of a mapping in the order of keys. The line of an absent value is 0.
func (d *documentDecoder) decodeMapping(n tree.Node, what string, keys ...string) (values [maxFields]tree.Node) {
	if n.Kind != tree.Mapping {
		d.reportNotMapping(n, what, keys)
		return values
	}
	var written, guessed [maxFields]tree.Node
	for i := 0; i < len(n.Children); i += 2 {
		key, value := n.Children[i], n.Children[i+1]
		index := indexFold(keys, key.Text)
		if index < 0 {
			if index = d.reportUnknownKey(key, what, keys); index >= 0 {
				guessed[index] = value
			}
			continue
		}
		d.reportKeySpelling(key, keys[index])
		if written[index].Line > 0 {
			d.reportError(key, policy.CodeDupKey, what+" has the key "+keys[index]+" twice",
				"keep one of them; upper and lower case make no difference").
				AddRelated(d.document.Source.PlaceAt(positionOf(written[index])), "the first")
			value = joinLists(values[index], value)
		}
		if written[index].Line == 0 {
			written[index] = key
		}
		values[index] = value
	}
	// Use the value of a misspelled key, because its absence would cause more errors.
	for index := range keys {
		if written[index].Line == 0 {
			values[index] = guessed[index]
		}
	}
	return values
}

func (d *documentDecoder) reportNotMapping(n tree.Node, what string, keys []string) {
	if n.Line == 0 {
		return
	}
	if len(keys) == 0 {
		d.reportError(n, policy.CodeKind, what+" has "+n.Kind.String()+" as its value, not an empty mapping", "write `"+what+": {}`")
		return
	}
	d.reportUnreadable(n, what+" is "+n.Kind.String()+", not a mapping", "write a mapping with "+words.JoinWords(keys, "and"))
}

// reportUnknownKey reports an unknown key, and returns the index of the key that was probably meant, or -1.
func (d *documentDecoder) reportUnknownKey(key tree.Node, what string, keys []string) int {
	message := what + " has no key " + words.QuoteName(key.Text)
	if len(keys) == 0 {
		d.reportError(key, policy.CodeUnknownKey, message, "write `"+what+": {}`")
		return -1
	}
	if slices.Contains([]string{"rbac", "rolebindingv2", "subjectrelation", "subjectidentifier", "conditionsets"}, strings.ToLower(key.Text)) {
		// The content of this key is missing now; without this mark, that would cause more errors.
		d.document.incomplete = true
		d.reportError(key, policy.CodeUnknownKey, message+": RBAC v2 of permissions-api is not supported",
			"bind roles by `roleBinding: {}`; see docs/guides/permissions-api.md")
		return -1
	}
	meant := indexNearest(keys, key.Text)
	hint := "its keys are " + words.JoinWords(keys, "and")
	if meant >= 0 {
		hint = "did you mean " + keys[meant] + "?"
	}
	d.reportError(key, policy.CodeUnknownKey, message, hint)
	return meant
}

// joinLists concatenates two lists under one key; of other values it returns the first.
func joinLists(first, second tree.Node) tree.Node {
	if first.Kind == tree.Sequence && second.Kind == tree.Sequence {
		first.Children = append(slices.Clip(first.Children), second.Children...)
	}
	return first
}

func indexFold(keys []string, text string) int {
	for i, key := range keys {
		if len(key) == len(text) && (key == text || strings.EqualFold(key, text)) {
			return i
		}
	}
	return -1
}

// indexNearest returns the index of the only key that is a few typing mistakes away, or -1.
func indexNearest(keys []string, text string) int {
	const maxMistakes, maxLength = 3, 64
	best, found := maxMistakes+1, -1
	for i, key := range keys {
		if len(text) > maxLength {
			break
		}
		mistakes := words.EditDistance(strings.ToLower(key), strings.ToLower(text))
		if mistakes > len(key)/3 {
			continue
		}
		switch {
		case mistakes < best:
			best, found = mistakes, i
		case mistakes == best:
			found = -1
		}
	}
	return found
}
