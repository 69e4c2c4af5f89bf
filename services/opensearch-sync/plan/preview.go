package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// Difference is what becomes of a field: both in JSON, without what is of no account, and empty if there is nothing.
type Difference struct{ Field, Before, After string }

// Differences are what an action changes of what is there. The attributes that are ours are left out: one of them stands for a password.
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

// shown is a value in JSON, a list in the order of the alphabet.
func shown(value any) string {
	if normal(value) == nil {
		return ""
	}
	items, is := value.([]any)
	if !is {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value) // What was decoded can be encoded.
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

// public is a content without attributes that are ours.
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

// Keeps is o with the password that is there for the user, whatever it is.
func (o Object) Keeps(is Entity) Object {
	o.Tag = is.attribute(opensearchv1.PasswordAttribute)
	return o
}

// Unlike are the actions that are not among others.
func Unlike(actions, others []Action) []Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a Action) bool {
		return slices.ContainsFunc(others, func(other Action) bool {
			return a.Name == other.Name && a.Password == other.Password && (a.Body == nil) == (other.Body == nil) &&
				text(map[string]any(a.Body)) == text(map[string]any(other.Body))
		})
	})
}
