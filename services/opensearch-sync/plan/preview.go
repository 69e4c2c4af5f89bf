package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// Difference is the change of one field. Before and After hold normalized JSON and are empty for an absent value.
type Difference struct{ Field, Before, After string }

// Differences returns the fields that an action changes. It leaves out the reserved attributes, because one of them
// holds the password tag.
func (k Kind) Differences(a Action, is Entity) (all []Difference) {
	before, after := public(is.Body), public(a.Body)
	if a.Body != nil && len(a.Fields) > 0 {
		after = maps.Clone(before)
		for _, field := range a.Fields {
			after[field] = public(a.Body)[field]
		}
	}
	for _, field := range k.changed(before, after) {
		all = append(all, Difference{Field: field, Before: shown(before[field]), After: shown(after[field])})
	}
	return all
}

// shown returns a value in JSON. Lists are sorted and have no duplicates.
func shown(value any) string {
	if normal(value) == nil {
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
		all[i] = shown(item)
	}
	slices.Sort(all)
	return "[" + strings.Join(slices.Compact(all), ",") + "]"
}

// public returns a content without the reserved attributes.
func public(b Body) Body {
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
		if reserved(name) {
			delete(attributes, name)
		}
	}
	all["attributes"] = attributes
	return all
}

// Keeps returns o with the password tag that the entity has now, so that the password stays.
func (o Object) Keeps(is Entity) Object {
	o.Tag = is.attribute(opensearchv1.PasswordAttribute)
	return o
}

// Unlike returns the actions that others does not contain.
func Unlike(actions, others []Action) []Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a Action) bool {
		return slices.ContainsFunc(others, func(other Action) bool {
			return a.Name == other.Name && a.Password == other.Password && (a.Body == nil) == (other.Body == nil) &&
				text(map[string]any(a.Body)) == text(map[string]any(other.Body))
		})
	})
}
