package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// Reasons of the condition Ready.
const (
	Synced         = "Synced"
	Exists         = "AlreadyExists"
	Foreign        = "NotManaged"
	NameTaken      = "NameTaken"
	Reserved       = "Reserved"
	OtherWriter    = "OtherController"
	ClusterChanged = "ClusterChanged"
	RoleMissing    = "RoleMissing"
	AndConflict    = "AndBackendRolesConflict"
	BindNeeded     = "BindNeeded"
	Refused        = "Refused"
	Invalid        = "Invalid"
	TooLarge       = "TooLarge"
	// ActionGroupMissing means that a name has the form of an action group, and no such group exists.
	ActionGroupMissing = "ActionGroupMissing"
	NotListed          = "NotListed"
	Writing            = "Writing"
	// Unanswered means that the object is deleted, and that an earlier request without an answer may still take effect.
	Unanswered = "Unanswered"
)

// Verdict is the result for an object, as its status reports it.
type Verdict struct {
	State           opensearchv1.State
	Reason, Message string
}

// replaceIfWorse replaces v by other if other is worse: an error is worse than a wait, a wait worse than success.
func (v *Verdict) replaceIfWorse(other *Verdict) {
	rank := map[opensearchv1.State]int{opensearchv1.Error: 2, opensearchv1.Pending: 1}
	if other != nil && rank[other.State] > rank[v.State] {
		*v = *other
	}
}

// SyncedVerdict returns the verdict for an object that OpenSearch holds as declared.
func SyncedVerdict() Verdict { return Verdict{State: opensearchv1.Created, Reason: Synced} }

// UnansweredVerdict returns the verdict for a deleted object that is held until no earlier request can take effect.
func UnansweredVerdict() Verdict {
	return pendingVerdict(Unanswered, "waits until a request without an answer from OpenSearch has taken effect or expired")
}

func failedVerdict(reason, message string) Verdict {
	return Verdict{State: opensearchv1.Error, Reason: reason, Message: message}
}

func pendingVerdict(reason, message string) Verdict {
	return Verdict{State: opensearchv1.Pending, Reason: reason, Message: message}
}

// DeclaredObject is an object that declares an OpenSearch entity of its own.
type DeclaredObject struct {
	// UID is the UID of the object. Source is the UID of the object that it was migrated from.
	UID, Source string
	// Name is the name of the entity.
	Name    string
	Created time.Time
	// Leaving marks an object that is being deleted. Gone marks one that was deleted before its entity was removed; it
	// is Leaving, too.
	Leaving, Gone bool
	// Adopt lets the object take over an existing entity of the name.
	Adopt bool
	// Existing records whether an entity of the name existed before the object. It is nil if that was never checked.
	Existing *bool
	// Synced means that the last status reports the object as ready, or reports that another controller has written it
	// since.
	Synced bool
	// InStep means that the last status reports this generation as ready on this server.
	InStep bool
	Body   Body
	// Tag is the keyed hash of a user's password; see [PasswordTag].
	Tag string
	// PasswordMissing is the reason why Tag is missing. The user then keeps its present password.
	PasswordMissing *Verdict
	// Obstacle is the reason why nothing can be written for the object.
	Obstacle *Verdict
	// Grants holds the grants of the server. Approval is the annotation value that allows them; Approved means that the
	// object has it.
	Grants   ProtectedGrants
	Approval string
	Approved bool
	// Elsewhere means that the object belongs to another cluster object that leads to the same server, and that its record
	// claims the name. The runs of that cluster object decide about it.
	Elsewhere bool
}

// ObjectOutcome is the decision about one object.
type ObjectOutcome struct {
	Verdict
	// Existing is the value that the object's record must hold before any write for it.
	Existing *bool
	// Owns means that OpenSearch has an entity of the object, or is about to. The object must not be released before
	// its removal.
	Owns bool
	// Unseen means that an earlier write may still create the entity, perhaps with an earlier content.
	Unseen bool
}

// ObjectDecision is the plan for all objects of a kind.
type ObjectDecision struct {
	// Outcomes holds the outcomes by UID.
	Outcomes map[string]ObjectOutcome
	Actions  []Action
	// Again means that further actions become possible once these are done.
	Again bool
}

// DecideObjects plans for all objects of a kind in a cluster that declare entities of their own.
func DecideObjects(k EntityKind, objects []DeclaredObject, actual map[string]Entity) ObjectDecision {
	d := ObjectDecision{Outcomes: map[string]ObjectOutcome{}}
	byName, live := map[string][]DeclaredObject{}, map[string]bool{}
	for _, o := range objects {
		live[o.UID] = true
	}
	for _, o := range objects {
		if live[o.Source] { // A live source keeps its entity.
			o.Source = ""
		}
		byName[o.Name] = append(byName[o.Name], o)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		entity, there := actual[name]
		n := namedEntity{kind: k, objects: byName[name], there: there, Entity: entity, heir: slices.ContainsFunc(byName[name], func(o DeclaredObject) bool {
			return !o.Leaving && !o.Elsewhere && o.Obstacle == nil && o.PasswordMissing == nil && (o.Approved || len(o.Grants.RolesOfUser(o.Name, o.Body)) == 0)
		})}
		n.decideEntity(&d)
	}
	return d
}

// namedEntity holds the objects that declare one name, and the entity of that name.
type namedEntity struct {
	kind    EntityKind
	objects []DeclaredObject
	there   bool
	Entity
	// heir means that a live object can take over the entity of a deleted one.
	heir bool
}

// isOwnedBy reports whether the entity belongs to o, or to a deleted object of the same name that o may succeed. Without an
// entity, it reports whether the record claims the name.
func (n namedEntity) isOwnedBy(o DeclaredObject) bool {
	if !n.there {
		return o.Elsewhere || n.kind != Users && o.Existing != nil && !*o.Existing
	}
	return n.isOwnEntityOf(o) || !o.Leaving && o.Existing == nil &&
		slices.ContainsFunc(n.objects, func(before DeclaredObject) bool { return before.Gone && n.isOwnEntityOf(before) })
}

// IsOwner reports whether an entity in OpenSearch belongs to an object.
func (k EntityKind) IsOwner(e Entity, o DeclaredObject) bool {
	return namedEntity{kind: k, there: true, Entity: e}.isOwnEntityOf(o)
}

// isOwnEntityOf reports whether the entity belongs to o itself. Users carry the UID as an attribute. Other kinds have no mark, so
// the record decides while the object exists: a late write may create any earlier content. For a gone object the content
// must also be equal.
func (n namedEntity) isOwnEntityOf(o DeclaredObject) bool {
	if n.kind != Users {
		return o.Existing != nil && !*o.Existing && (!o.Gone || n.kind.equalBodies(o.Body, n.Body))
	}
	uid := n.attributeOf(opensearchv1.UIDAttribute)
	return uid != "" && (uid == o.UID || uid == o.Source)
}

// sortByClaim sorts the objects that name the entity: its owner first, then those that adopt it, then by age.
func (n namedEntity) sortByClaim() {
	rank := func(o DeclaredObject) int {
		switch {
		case n.isOwnedBy(o):
			return 0
		case n.there && o.Adopt: // The other objects may not have a foreign entity at all.
			return 1
		default:
			return 2
		}
	}
	slices.SortFunc(n.objects, func(a, b DeclaredObject) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
}

func (n namedEntity) decideEntity(d *ObjectDecision) {
	n.sortByClaim()
	leaving := false // The entity is about to be removed.
	for _, o := range n.objects {
		if o.Leaving {
			leaving = n.decideDeletedObject(d, o, leaving) || leaving
		}
	}
	first := ""
	for _, o := range n.objects {
		switch {
		case o.Leaving:
		case o.Elsewhere:
			if first == "" && n.isOwnedBy(o) {
				first = o.UID
			}
		case leaving:
			d.Again = true
			d.Outcomes[o.UID] = ObjectOutcome{Verdict: pendingVerdict(NameTaken, "an object that is being deleted has this name; it is removed first")}
		case first != "" && (!n.isOwnedElsewhere() || n.isOwnedBy(o) || o.Adopt || !n.there):
			d.Outcomes[o.UID] = ObjectOutcome{Verdict: failedVerdict(NameTaken,
				fmt.Sprintf("another object also asks for %q; delete or rename one of them", o.Name))}
		default:
			first = o.UID
			n.decideLiveObject(d, o)
		}
	}
}

// decideDeletedObject decides about a deleted object. It reports whether the entity is removed for it, unless that is planned
// already.
func (n namedEntity) decideDeletedObject(d *ObjectDecision, o DeclaredObject, planned bool) bool {
	owned, outcome := n.isOwnedBy(o), ObjectOutcome{Verdict: SyncedVerdict()}
	outcome.Unseen = n.kind == Users && !n.there || n.kind != Users && owned && (!n.there || !o.Gone)
	removes := n.there && owned && !planned && !n.isOwnedElsewhere() && (!o.Gone || !n.heir) && !n.hasSuccessor()
	switch {
	case !removes || n.Static: // A static entity replaces what the object made.
		removes = false
	case n.Guarded:
		removes, outcome.Owns, outcome.Existing = false, true, o.Existing
		outcome.Verdict = failedVerdict(Reserved, "OpenSearch has reserved what this object made; end the reservation in OpenSearch")
	default:
		d.Actions = append(d.Actions, Action{Name: o.Name, For: []string{o.UID}})
	}
	d.Outcomes[o.UID] = outcome
	return removes
}

// hasSuccessor reports whether a live object has recorded the entity of a deleted one as its own, and overwrites it.
func (n namedEntity) hasSuccessor() bool {
	return slices.ContainsFunc(n.objects, func(o DeclaredObject) bool {
		return !o.Leaving && !o.Elsewhere && o.Obstacle == nil && n.isOwnEntityOf(o)
	})
}

// isOwnedElsewhere reports whether an object of another cluster object has the entity, or claims the name.
func (n namedEntity) isOwnedElsewhere() bool {
	return slices.ContainsFunc(n.objects, func(o DeclaredObject) bool { return o.Elsewhere && n.isOwnedBy(o) })
}

// decideLiveObject decides about the one object that may have the name.
func (n namedEntity) decideLiveObject(d *ObjectDecision, o DeclaredObject) {
	owns := n.isOwnedBy(o)
	switch {
	case n.there && n.Guarded:
		d.Outcomes[o.UID] = n.protectedEntityOutcome(o)
		return
	case n.there && !owns && !o.Adopt:
		d.Outcomes[o.UID] = n.foreignEntityOutcome()
		return
	case o.Obstacle != nil:
		d.Outcomes[o.UID] = ObjectOutcome{Verdict: *o.Obstacle, Existing: o.Existing, Owns: owns}
		return
	case o.PasswordMissing != nil && (!n.there || !owns):
		d.Outcomes[o.UID] = ObjectOutcome{Verdict: *o.PasswordMissing, Existing: o.Existing, Owns: owns}
		return
	case n.there && owns && n.isOverwrittenByOperator(o):
		d.Outcomes[o.UID] = ObjectOutcome{Owns: true, Verdict: OverwrittenVerdict()}
		return
	}
	outcome := ObjectOutcome{Verdict: SyncedVerdict(), Owns: true, Unseen: owns && !n.there}
	if o.PasswordMissing != nil { // Revocations must not wait for the password.
		outcome.Verdict, o = *o.PasswordMissing, o.WithExistingPassword(n.Entity)
	}
	if n.kind != Users {
		outcome.Existing = new(false)
	}
	d.Outcomes[o.UID] = outcome
	want := n.desiredBody(o)
	password := n.kind == Users && (!n.there || n.attributeOf(opensearchv1.PasswordAttribute) != o.Tag)
	if n.there && !password && n.kind.equalBodies(want, n.Body) {
		return
	}
	if roles := n.unapprovedRoles(o, password); len(roles) > 0 {
		d.Outcomes[o.UID] = ObjectOutcome{Owns: owns, Verdict: missingBindVerbVerdict("the name, the roles or the backend roles bring", roles[0], o.Approval)}
		if want, password = n.bodyWithoutUnapproved(o), false; !owns || n.kind.equalBodies(want, n.Body) {
			return
		}
	}
	a := Action{Name: o.Name, Body: n.kind.completeBody(want), For: []string{o.UID}, Password: password}
	if o.InStep {
		a.Drift = n.driftedFields(o)
	}
	if n.kind == Users && !password { // A whole user would come back without a password if it was removed meanwhile.
		a.Fields = n.kind.changedFields(want, n.Body)
	}
	d.Actions = append(d.Actions, a)
}

// missingBindVerbVerdict returns the verdict for an object that receives or gives a protected role without approval.
func missingBindVerbVerdict(how, role, approval string) Verdict {
	return failedVerdict(BindNeeded, fmt.Sprintf("%s role %q, which OpenSearch protects; annotate the object with %s=%s, "+
		"which requires the verb bind on all opensearchroles of the namespace", how, role, opensearchv1.BindAnnotation, approval))
}

// bodyWithoutUnapproved returns the desired user without what needs approval: the password, the roles and the backend roles stay, and
// only a role that the object no longer has is removed.
func (n namedEntity) bodyWithoutUnapproved(o DeclaredObject) Body {
	want := n.desiredBody(o.WithExistingPassword(n.Entity))
	for _, field := range []string{fieldBackendRoles, fieldRoles} {
		want[field] = toAnySlice(slices.DeleteFunc(n.stringListOf(field), func(role string) bool { return !slices.Contains(o.Body.stringListOf(field), role) }))
	}
	return want
}

// unapprovedRoles returns the protected roles that a write would give without approval. A new password counts as giving all
// roles of the user, unless the object was in step: then only the Secret, or the key of the tag, has changed.
func (n namedEntity) unapprovedRoles(o DeclaredObject, password bool) []string {
	if n.kind != Users || o.Approved {
		return nil
	}
	gives := o.Grants.RolesOfUser(o.Name, o.Body)
	if password && !o.InStep {
		return gives
	}
	has := o.Grants.RolesOfUser(o.Name, n.Body)
	return slices.DeleteFunc(gives, func(role string) bool { return role != o.Grants.rest && slices.Contains(has, role) })
}

// desiredBody returns the content that OpenSearch must hold for an object. For a user it adds the attributes of ownership.
func (n namedEntity) desiredBody(o DeclaredObject) Body {
	if n.kind != Users {
		return o.Body
	}
	want := maps.Clone(o.Body)
	attributes, _ := want["attributes"].(map[string]any)
	attributes = maps.Clone(attributes)
	if attributes == nil {
		attributes = map[string]any{}
	}
	attributes[opensearchv1.UIDAttribute], attributes[opensearchv1.PasswordAttribute] = o.UID, o.Tag
	want["attributes"] = attributes
	return want
}

// driftedFields returns the fields that other writers changed since the object was in step, or all fields if the entity is
// missing. A new password in a Secret is no drift.
func (n namedEntity) driftedFields(o DeclaredObject) []string {
	if !n.there {
		return n.kind.changedFields(n.desiredBody(o), nil)
	}
	return n.kind.changedFields(n.desiredBody(o.WithExistingPassword(n.Entity)), n.Body)
}

// isOverwrittenByOperator reports whether the public operator has written a user after opensearch-sync.
func (n namedEntity) isOverwrittenByOperator(o DeclaredObject) bool {
	return n.kind == Users && o.Synced && !o.Adopt && n.IsOperatorWritten()
}

// IsOperatorWritten reports whether the last write of a user was the public operator's. Its writes drop the attribute with the
// password tag.
func (e Entity) IsOperatorWritten() bool {
	return e.attributeOf(opensearchv1.VersionAttribute) != "" && e.attributeOf(opensearchv1.PasswordAttribute) == ""
}

// OverwrittenVerdict returns the verdict for a user that the public operator has written after opensearch-sync.
func OverwrittenVerdict() Verdict {
	return failedVerdict(OtherWriter,
		"another controller has written the user since: stop one of the two, or annotate the object with "+opensearchv1.AdoptAnnotation+"=true")
}

func (n namedEntity) protectedEntityOutcome(o DeclaredObject) ObjectOutcome {
	outcome := ObjectOutcome{Existing: new(true), Verdict: Verdict{
		State: opensearchv1.Ignored, Reason: Reserved, Message: "it is reserved by OpenSearch and not changed; choose another name",
	}}
	if n.kind == Users {
		outcome = ObjectOutcome{Verdict: failedVerdict(Reserved, "OpenSearch reserves the user for itself: choose another name")}
	}
	if n.isOwnedBy(o) && !n.Static { // It may have become reserved. The deletion must still find it.
		outcome.Existing, outcome.Owns = o.Existing, true
	}
	return outcome
}

func (n namedEntity) foreignEntityOutcome() ObjectOutcome {
	hint := "annotate the object with " + opensearchv1.AdoptAnnotation + "=true to take it over, or choose another name"
	if n.kind != Users {
		return ObjectOutcome{Existing: new(true), Verdict: Verdict{
			State: opensearchv1.Ignored, Reason: Exists, Message: "it exists in OpenSearch already and is not changed: " + hint,
		}}
	}
	if uid := n.attributeOf(opensearchv1.UIDAttribute); uid != "" {
		return ObjectOutcome{Verdict: failedVerdict(Foreign, fmt.Sprintf("the user belongs to another object (%s is %.64q): %s",
			opensearchv1.UIDAttribute, uid, hint))}
	}
	return ObjectOutcome{Verdict: failedVerdict(Foreign, "the user exists in OpenSearch already, from another author: "+hint)}
}
