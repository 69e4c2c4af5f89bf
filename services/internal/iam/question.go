package iam

import "slices"

// nobody is the subject of a request without a User or service account. Only its groups count.
const nobody = UserType + ":-"

// collection is the object id for a request that names no object. It collides with no object, because [ObjectName] never
// returns a single "%" as the id.
const collection = "%"

// AccessRequest describes one request to authorize.
type AccessRequest struct {
	// Subject is a [UserSubject] or a [ServiceAccountSubject], or empty.
	Subject string
	// Groups lists the groups that the authenticator reports.
	Groups []string
	// Permission is the permission that the request needs. Kind is the kind of the object: that of the permission, or a
	// kind above it.
	Permission string
	Kind       *RegisteredKind
	// Namespace is the namespace of the request. It counts as a parent if namespaces are a registered parent kind. For
	// a known object its own namespace replaces this one.
	Namespace string
	// Object is an [ObjectName] name, or empty if the request names no object.
	Object string
	// Parent is the [ObjectName] name of the parent in the request. It may be empty. It counts only if the object is
	// unknown and the parent's kind is above the object's.
	Parent string
}

// OpenFGACheck holds one check for OpenFGA.
type OpenFGACheck struct {
	Tuple

	// Context holds tuples that are true for this request: the groups of its subject and the parents of its objects.
	Context []Tuple
}

// BuildCheck translates a question into a check for OpenFGA. It returns false if no check can succeed: for an unknown
// permission, for one that the kind cannot hold, and for an inactive subject. The check includes only the groups for
// which granted returns true.
func (o *Lookup) BuildCheck(q AccessRequest, granted func(group string) bool) (c OpenFGACheck, ok bool) {
	relation, known := o.Registry.RelationOf(q.Permission)
	if !known || !slices.Contains(q.Kind.GrantablePermissions(), q.Permission) || o.Inactive(q.Subject) {
		return OpenFGACheck{}, false
	}
	c.Tuple = Tuple{q.Subject, relation, q.Object}
	if c.User == "" {
		c.User = nobody
	}
	if c.Object == "" {
		c.Object = q.Kind.Type + ":" + collection
	}
	for _, group := range q.Groups {
		if granted(group) {
			c.Context = append(c.Context, Tuple{c.User, memberRelation, TokenGroupObject(group)})
		}
	}
	linked := map[string]bool{}
	o.addContextualParents(&c, q.Kind, c.Object, q.Namespace, linked)
	o.addRequestedParent(&c, q, linked)
	slices.SortFunc(c.Context, Tuple.Compare)
	c.Context = slices.Compact(c.Context)
	return c, true
}

// addRequestedParent adds the parent in the request as a contextual parent of an unknown object. Kinds between the two get a
// placeholder object each.
func (o *Lookup) addRequestedParent(c *OpenFGACheck, q AccessRequest, linked map[string]bool) {
	if _, known := o.Target(q.Object); known || q.Parent == "" {
		return
	}
	object := c.Object
	for between := q.Kind.pathTo(TypeOfObject(q.Parent)); len(between) > 0; between = between[1:] {
		above := between[0].Type + ":" + collection
		if len(between) == 1 {
			above = q.Parent
			o.addContextualParents(c, between[0], above, "", linked)
		}
		c.Context = append(c.Context, Tuple{above, parentRelation, object})
		object = above
	}
}

// addContextualParents adds the contextual parents of an object to c: its kind's root, its namespace, and, recursively, those of its
// parents. Tuples to its stored parents are in OpenFGA already.
func (o *Lookup) addContextualParents(c *OpenFGACheck, k *RegisteredKind, object, namespace string, linked map[string]bool) {
	if linked[object] {
		return
	}
	linked[object] = true
	found, there := o.Target(object)
	if there {
		namespace = found.Namespace
	}
	c.Context = append(c.Context, Tuple{RootObject(k.Type), rootRelation, object})
	for _, parent := range k.Parents {
		if parent.Type == OpenFGAType("", "Namespace") && namespace != "" {
			within := ObjectName(parent.Type, "", namespace)
			c.Context = append(c.Context, Tuple{within, parentRelation, object})
			o.addContextualParents(c, parent, within, "", linked)
		}
	}
	for _, above := range o.storedParentNames(k, found) {
		if parent, ok := o.Registry.Kind(TypeOfObject(above)); ok {
			o.addContextualParents(c, parent, above, "", linked)
		}
	}
}

// SplitContext divides a check whose context has more tuples than the limit. The subject is allowed if any part allows it, because
// each group grants by itself. Parts hold at most that many tuples, except when the tuples that are not about groups fill
// the limit alone.
func (c OpenFGACheck) SplitContext(most int) []OpenFGACheck {
	var links, groups []Tuple
	for _, t := range c.Context {
		if t.Relation == memberRelation && TypeOfObject(t.Object) == TokenGroupType {
			groups = append(groups, t)
		} else {
			links = append(links, t)
		}
	}
	if len(c.Context) <= most || len(groups) == 0 || len(links) >= most {
		return []OpenFGACheck{c}
	}
	var parts []OpenFGACheck
	for some := range slices.Chunk(groups, most-len(links)) {
		parts = append(parts, OpenFGACheck{Tuple: c.Tuple, Context: slices.Concat(links, some)})
	}
	return parts
}
