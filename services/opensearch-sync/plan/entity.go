package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// EntityKind is a kind of entity, named by the last part of its path in the security API. OpenSearch stores each kind in one
// document.
type EntityKind string

// Kinds of the security API.
const (
	Users        EntityKind = "internalusers"
	Roles        EntityKind = "roles"
	Mappings     EntityKind = "rolesmapping"
	Tenants      EntityKind = "tenants"
	ActionGroups EntityKind = "actiongroups"
)

// Fields that several kinds have.
const (
	fieldBackendRoles = "backend_roles"
	fieldRoles        = "opendistro_security_roles"
	fieldDescription  = "description"
)

// AllKinds lists all kinds.
func AllKinds() []EntityKind { return []EntityKind{ActionGroups, Tenants, Roles, Users, Mappings} }

// MaxBatchSize returns how many entities one request may change. With more, the server takes minutes.
func (k EntityKind) MaxBatchSize() int {
	switch k {
	case Users:
		return 200
	case Mappings:
		return 50
	default:
		return 500
	}
}

// ReferencedKind returns the kind that entities of k name, if they name any.
func (k EntityKind) ReferencedKind() (EntityKind, bool) {
	to, refers := map[EntityKind]EntityKind{Mappings: Roles, Roles: ActionGroups}[k]
	return to, refers
}

// writableFields returns the writable fields of a kind. The value reports whether the field is a list.
func (k EntityKind) writableFields() map[string]bool {
	switch k {
	case Users:
		return map[string]bool{fieldBackendRoles: true, fieldRoles: true, "attributes": false, fieldDescription: false}
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

// Body is the content of an entity as decoded JSON.
type Body map[string]any

// Entity is an entity that the server lists.
type Entity struct {
	Body
	// Guarded marks an entity that OpenSearch protects: reserved, hidden or static.
	Guarded bool
	// Static marks an entity that is part of OpenSearch.
	Static bool
}

// NewEntity returns the Entity for a listed value.
func NewEntity(listed map[string]any) Entity {
	is := func(flag string) bool { on, _ := listed[flag].(bool); return on }
	return Entity{Body: listed, Guarded: is("reserved") || is("hidden") || is("static"), Static: is("static")}
}

// KeepKnownFields returns the fields of a listed entity that matter here, because a server may send any others.
func (k EntityKind) KeepKnownFields(listed map[string]any) map[string]any {
	kept := map[string]any{}
	for _, field := range append(slices.Collect(maps.Keys(k.writableFields())), "reserved", "hidden", "static") {
		if value, ok := listed[field]; ok {
			kept[field] = value
		}
	}
	return kept
}

// attributeOf returns an attribute of a user, or "".
func (e Entity) attributeOf(name string) string {
	attributes, _ := e.Body["attributes"].(map[string]any)
	text, _ := attributes[name].(string)
	return text
}

// stringListOf returns the texts of a field.
func (b Body) stringListOf(field string) []string {
	values, _ := b[field].([]any)
	texts := make([]string, 0, len(values))
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// completeBody returns b with all fields of the kind and no others. The server drops empty lists and refuses to add to a
// missing one, so lists are always written as a whole.
func (k EntityKind) completeBody(b Body) Body {
	all := Body{}
	for field, list := range k.writableFields() {
		value, ok := b[field]
		switch {
		case ok && value != nil:
			all[field] = value
		case list:
			all[field] = []any{}
		}
	}
	if _, ok := all[fieldDescription]; !ok && k == Tenants {
		all[fieldDescription] = "" // OpenSearch refuses a tenant without any field.
	}
	return all
}

// changedFields returns the names of the fields that differ, sorted.
func (k EntityKind) changedFields(a, b Body) (fields []string) {
	for field := range k.writableFields() {
		if canonicalText(a[field]) != canonicalText(b[field]) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}

// equalBodies reports whether two contents are equivalent. Order, duplicates and empty values do not count.
func (k EntityKind) equalBodies(a, b Body) bool {
	return len(k.changedFields(a, b)) == 0
}

// canonicalText returns a text that is equal for equivalent values, whatever the order of their lists.
func canonicalText(value any) string {
	data, err := json.Marshal(normalizeValue(value))
	if err != nil {
		return fmt.Sprintf("%v", value) // Decoded JSON can always be encoded.
	}
	return string(data)
}

// normalizeValue returns a value with lists sorted and without empty parts, or nil if nothing is left.
func normalizeValue(value any) any {
	switch v := value.(type) {
	case string:
		if v != "" {
			return v
		}
	case []any:
		var texts []string
		for _, item := range v {
			texts = append(texts, canonicalText(item))
		}
		slices.Sort(texts)
		if texts = slices.Compact(texts); len(texts) > 0 {
			return texts
		}
	case map[string]any:
		fields := map[string]any{}
		for key, item := range v {
			if is := normalizeValue(item); is != nil {
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

// Action is one change. An action without a body removes the entity. An action with a password is a request of its own:
// a user that is created without one could not log in.
type Action struct {
	Name string
	Body Body
	// For holds the UIDs of the objects that the change is made for. Only a mapping can have several.
	For []string
	// Fields lists the fields to change. Without it the entity is written as a whole.
	Fields []string
	// Was is the listed content of a mapping that is changed. The change then adds and removes single entries, so that
	// entries of other writers since the listing stay.
	Was Body
	// Password means that the password of For is written, too.
	Password bool
	// Drift lists the fields that other writers changed, if all objects of For were in step before.
	Drift []string
}

// ContainsResult reports whether a listing contains the result of an action.
func (k EntityKind) ContainsResult(a Action, listed map[string]Entity) bool {
	is, there := listed[a.Name]
	if !there || a.Body == nil {
		return !there && a.Body == nil
	}
	if a.Was != nil {
		has, want, was := is.MappingEntries(), Entity{Body: a.Body}.MappingEntries(), Entity{Body: a.Was}.MappingEntries()
		return want.minus(was).minus(has).isEmpty() && was.minus(want).intersect(has).isEmpty()
	}
	return !slices.ContainsFunc(k.changedFields(a.Body, is.Body), func(field string) bool {
		return len(a.Fields) == 0 || slices.Contains(a.Fields, field)
	})
}

// maxRequest bounds the size of a batch, in bytes. Servers accept at least 10 MB.
const maxRequest = 4 << 20

// SplitIntoRequests splits actions into requests: single ones for actions with a password, and batches for all others.
func SplitIntoRequests(k EntityKind, actions []Action) (alone []Action, batches [][]Action) {
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
		n := a.estimatedSize()
		if last := len(batches) - 1; last >= 0 && len(batches[last]) < k.MaxBatchSize() && size+n <= maxRequest {
			batches[last] = append(batches[last], a)
			size += n
			continue
		}
		batches, size = append(batches, []Action{a}), n
	}
	return alone, batches
}

// estimatedSize returns the approximate share of a request, in bytes.
func (a Action) estimatedSize() int {
	data, err := json.Marshal(a.Body)
	if err != nil {
		return maxRequest // Decoded JSON can always be encoded.
	}
	return len(a.Name) + len(data)
}
