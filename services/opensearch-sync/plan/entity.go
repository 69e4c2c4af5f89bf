package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Kind is a kind of thing in OpenSearch, by the last part of its path in the security API. Each is one document there.
type Kind string

// Kinds.
const (
	Users        Kind = "internalusers"
	Roles        Kind = "roles"
	Mappings     Kind = "rolesmapping"
	Tenants      Kind = "tenants"
	ActionGroups Kind = "actiongroups"
)

// Fields that several kinds have.
const (
	fieldBackendRoles = "backend_roles"
	fieldDescription  = "description"
)

// Kinds lists them all.
func Kinds() []Kind { return []Kind{ActionGroups, Tenants, Roles, Users, Mappings} }

// Batch is how many things of the kind one request may be about: beyond, the server takes minutes.
func (k Kind) Batch() int {
	switch k {
	case Users:
		return 200
	case Mappings:
		return 50
	default:
		return 500
	}
}

// References returns the other kind whose things those of k name, if there is one.
func (k Kind) References() (Kind, bool) {
	to, refers := map[Kind]Kind{Mappings: Roles, Roles: ActionGroups}[k]
	return to, refers
}

// fields are what may be written of a thing, and whether it is a list.
func (k Kind) fields() map[string]bool {
	switch k {
	case Users:
		return map[string]bool{fieldBackendRoles: true, "opendistro_security_roles": true, "attributes": false, fieldDescription: false}
	case Roles:
		return map[string]bool{"cluster_permissions": true, "index_permissions": true, "tenant_permissions": true, fieldDescription: false}
	case Mappings:
		return map[string]bool{"users": true, fieldBackendRoles: true, "hosts": true, "and_backend_roles": true, fieldDescription: false}
	case Tenants:
		return map[string]bool{fieldDescription: false}
	default:
		return map[string]bool{"allowed_actions": true, "type": false, fieldDescription: false}
	}
}

// Body is the content of a thing, as JSON is decoded.
type Body map[string]any

// Entity is a thing that the server lists.
type Entity struct {
	Body
	// Guarded things are OpenSearch's own: reserved, hidden or static.
	Guarded bool
}

// Read makes an Entity of what the server lists.
func Read(listed map[string]any) Entity {
	is := func(flag string) bool { on, _ := listed[flag].(bool); return on }
	return Entity{Body: listed, Guarded: is("reserved") || is("hidden") || is("static")}
}

// Keep returns what a listed thing has of the fields that matter: a server may send any others.
func (k Kind) Keep(listed map[string]any) map[string]any {
	kept := map[string]any{}
	for _, field := range append(slices.Collect(maps.Keys(k.fields())), "reserved", "hidden", "static") {
		if value, ok := listed[field]; ok {
			kept[field] = value
		}
	}
	return kept
}

// attribute is one of a user's.
func (e Entity) attribute(name string) string {
	attributes, _ := e.Body["attributes"].(map[string]any)
	text, _ := attributes[name].(string)
	return text
}

// list is a field as texts.
func (b Body) list(field string) []string {
	values, _ := b[field].([]any)
	texts := make([]string, 0, len(values))
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// whole is b with all fields of the kind and no others: fields are always written as a whole, for the server forgets empty
// lists, and refuses to add to them.
func (k Kind) whole(b Body) Body {
	all := Body{}
	for field, list := range k.fields() {
		value, ok := b[field]
		switch {
		case ok && value != nil:
			all[field] = value
		case list:
			all[field] = []any{}
		}
	}
	if _, ok := all[fieldDescription]; !ok && k == Tenants {
		all[fieldDescription] = "" // Without any field it is refused.
	}
	return all
}

// changed are the fields in which two contents differ.
func (k Kind) changed(a, b Body) (fields []string) {
	for field := range k.fields() {
		if text(a[field]) != text(b[field]) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}

// same reports whether two contents mean the same: order and repetition of entries do not matter, nor does whether what is
// empty is there.
func (k Kind) same(a, b Body) bool {
	return len(k.changed(a, b)) == 0
}

// text stands for a value, whatever the order in its lists.
func text(value any) string {
	data, err := json.Marshal(normal(value))
	if err != nil {
		return fmt.Sprintf("%v", value) // What was decoded can be encoded.
	}
	return string(data)
}

// normal is a value without what is empty, with lists sorted; nil if nothing is left.
func normal(value any) any {
	switch v := value.(type) {
	case string:
		if v != "" {
			return v
		}
	case []any:
		var texts []string
		for _, item := range v {
			texts = append(texts, text(item))
		}
		slices.Sort(texts)
		if texts = slices.Compact(texts); len(texts) > 0 {
			return texts
		}
	case map[string]any:
		fields := map[string]any{}
		for key, item := range v {
			if is := normal(item); is != nil {
				fields[key] = is
			}
		}
		if len(fields) > 0 {
			return fields
		}
	case nil:
	default:
		return v
	}
	return nil
}

// Action is one change. Without a body the thing is removed; one with a password is written by itself, for a user without
// is one whom nobody can be.
type Action struct {
	Name string
	Body Body
	// For is the UID of the object on whose behalf it is; of a mapping there may be several.
	For []string
	// Fields are those that change; without, the thing is written as a whole.
	Fields []string
	// Password is that the password of For is to be written, too.
	Password bool
	// Drift lists the fields that others changed, if all objects of For were in step before.
	Drift []string
}

// Shows reports whether a listing has what an action meant.
func (k Kind) Shows(a Action, listed map[string]Entity) bool {
	is, there := listed[a.Name]
	if !there || a.Body == nil {
		return !there && a.Body == nil
	}
	return !slices.ContainsFunc(k.changed(a.Body, is.Body), func(field string) bool {
		return len(a.Fields) == 0 || slices.Contains(a.Fields, field)
	})
}

// maxRequest is how large a request may become, in bytes, before another begins: servers take 10 MB at least.
const maxRequest = 4 << 20

// Batches splits actions into requests.
func Batches(k Kind, actions []Action) (alone []Action, batches [][]Action) {
	var together []Action
	for _, a := range actions {
		if a.Password {
			alone = append(alone, a)
		} else {
			together = append(together, a)
		}
	}
	slices.SortFunc(together, func(a, b Action) int { return cmp.Compare(a.Name, b.Name) })
	size := 0
	for _, a := range together {
		n := a.size()
		if last := len(batches) - 1; last >= 0 && len(batches[last]) < k.Batch() && size+n <= maxRequest {
			batches[last] = append(batches[last], a)
			size += n
			continue
		}
		batches, size = append(batches, []Action{a}), n
	}
	return alone, batches
}

// size is about how much of a request an action is.
func (a Action) size() int {
	data, err := json.Marshal(a.Body)
	if err != nil {
		return maxRequest // What was decoded can be encoded.
	}
	return len(a.Name) + len(data)
}
