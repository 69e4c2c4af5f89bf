package syntax

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// SetObjectPositions sets the positions in a document from an object, and returns the document. Each part gets the position of
// its field, as [ParseFiles] sets lines. Root is the path of the field with the four lists, such as "spec".
func SetObjectPositions(d *Document, root string) *Document {
	f := fieldPositioner{d.Source}
	f.nextPosition(root)
	for i := range d.ResourceTypes {
		f.positionResourceType(&d.ResourceTypes[i], fmt.Sprintf("%s.resourceTypes[%d]", root, i))
	}
	for i := range d.Unions {
		u, path := &d.Unions[i], fmt.Sprintf("%s.unions[%d]", root, i)
		u.At, u.Name.At = f.nextPosition(path), f.nextPosition(path+".name")
		f.positionNames(u.Members, path+".resourceTypes")
	}
	for i := range d.Actions {
		a, path := &d.Actions[i], fmt.Sprintf("%s.actions[%d]", root, i)
		a.At, a.Name.At = f.nextPosition(path), f.nextPosition(path+".name")
	}
	for i := range d.Bindings {
		f.positionBinding(&d.Bindings[i], fmt.Sprintf("%s.actionBindings[%d]", root, i))
	}
	return d
}

// fieldPositioner assigns positions to the fields of an object, in the order of the object.
type fieldPositioner struct{ source *policy.DocumentSource }

func (f fieldPositioner) nextPosition(path string) policy.Position {
	return f.source.AddFieldPosition(path)
}

func (f fieldPositioner) positionNames(names []Name, path string) {
	for i := range names {
		names[i].At = f.nextPosition(fmt.Sprintf("%s[%d]", path, i))
	}
}

func (f fieldPositioner) positionResourceType(t *ResourceType, path string) {
	t.At, t.Name.At, t.IDPrefix.At = f.nextPosition(path), f.nextPosition(path+".name"), f.nextPosition(path+".idPrefix")
	for i := range t.Relationships {
		r, path := &t.Relationships[i], fmt.Sprintf("%s.relationships[%d]", path, i)
		r.At, r.Relation.At = f.nextPosition(path), f.nextPosition(path+".relation")
		f.positionNames(r.Targets, path+".targetTypes")
	}
}

func (f fieldPositioner) positionBinding(b *Binding, path string) {
	b.At, b.Action.At, b.Type.At = f.nextPosition(path), f.nextPosition(path+".actionName"), f.nextPosition(path+".typeName")
	for i := range b.Conditions {
		c, path := &b.Conditions[i], fmt.Sprintf("%s.conditions[%d]", path, i)
		c.At = f.nextPosition(path)
		if step := c.RelationshipAction; step != nil {
			path += ".relationshipAction"
			step.At, step.Relation.At, step.Action.At = f.nextPosition(path), f.nextPosition(path+".relation"), f.nextPosition(path+".actionName")
		}
	}
}

// maxOwner bounds an owner, because owners name modules in OpenFGA.
const maxOwner = 50

// ObjectOwner returns the owner of a document in the Kubernetes object namespace/name or cluster/namespace/name. The
// owner is namespace_name, with _ for each dot. That is unique, because no name of an object contains _. With a
// cluster, or if the result cannot name a module, the owner is a hash.
func ObjectOwner(object string) string {
	owner := strings.NewReplacer("/", "_", ".", "_").Replace(object)
	if strings.Count(object, "/") == 1 && len(owner) <= maxOwner && owner[0] >= 'a' && owner[0] <= 'z' {
		return owner
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(object)) // This never fails.
	return fmt.Sprintf("policy-%016x", h.Sum64())
}
