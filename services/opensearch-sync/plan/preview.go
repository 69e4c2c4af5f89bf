package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// FieldDifference is the change of one field. Before and After hold normalized JSON and are empty for an absent value.
type FieldDifference struct{ Field, Before, After string }

// FieldDifferences returns the fields that an action changes. It leaves out the reserved attributes, because one of them
// holds the password tag.
func (k EntityKind) FieldDifferences(a Action, is Entity) (all []FieldDifference) {
	before, after := publicBody(is.Body), publicBody(a.Body)
	if a.Body != nil && len(a.Fields) > 0 {
		after = maps.Clone(before)
		for _, field := range a.Fields {
			after[field] = publicBody(a.Body)[field]
		}
	}
	for _, field := range k.changedFields(before, after) {
		all = append(all, FieldDifference{Field: field, Before: sortedJSON(before[field]), After: sortedJSON(after[field])})
	}
	return all
}

// sortedJSON returns a value in JSON. Lists are sorted and have no duplicates.
func sortedJSON(value any) string {
	if normalizeValue(value) == nil {
		return ""
	}
	items, is := value.([]any)
	if !is {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value) // Decoded JSON can always be encoded.
		}
		return string(data)
	}
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = sortedJSON(item)
	}
	slices.Sort(all)
	return "[" + strings.Join(slices.Compact(all), ",") + "]"
}

// publicBody returns a content without the reserved attributes.
func publicBody(b Body) Body {
	all := maps.Clone(b)
	if all == nil {
		all = Body{}
	}
	attributes, ok := b["attributes"].(map[string]any)
	if !ok {
		return all
	}
	attributes = maps.Clone(attributes)
	for name := range attributes {
		if isReservedAttribute(name) {
			delete(attributes, name)
		}
	}
	all["attributes"] = attributes
	return all
}

// WithExistingPassword returns o with the password tag that the entity has now, so that the password stays.
func (o DeclaredObject) WithExistingPassword(is Entity) DeclaredObject {
	o.Tag = is.attributeOf(opensearchv1.PasswordAttribute)
	return o
}

// ActionsNotIn returns the actions that others does not contain.
func ActionsNotIn(actions, others []Action) []Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a Action) bool {
		return slices.ContainsFunc(others, func(other Action) bool {
			return a.Name == other.Name && a.Password == other.Password && (a.Body == nil) == (other.Body == nil) &&
				canonicalText(map[string]any(a.Body)) == canonicalText(map[string]any(other.Body))
		})
	})
}
