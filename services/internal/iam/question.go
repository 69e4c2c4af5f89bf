package iam

import "slices"

// anonymousUser is the subject of a request without a User or service account. Only the groups of the request apply.
const anonymousUser = UserType + ":-"

// unnamedObjectID is the object ID for a request without an object name. It differs from every object, because
// [OpenFGAObject] never returns the ID "%".
const unnamedObjectID = "%"

// AccessRequest describes one request to authorize.
type AccessRequest struct {
	// Subject is a [UserSubject] or a [ServiceAccountSubject], or empty.
	Subject string
	// Groups lists the groups that the authenticator reports.
	Groups []string
	// Permission is the permission that the request needs. Kind is the kind of the object: the kind of the permission,
	// or a kind above it.
	Permission string
	Kind       *RegisteredKind
	// Namespace is the namespace of the request. It counts as a parent if namespaces are a registered parent kind. A
	// known object's own namespace replaces it.
	Namespace string
	// Object is an [OpenFGAObject] name, or empty if the request names no object.
	Object string
	// Parent is the [OpenFGAObject] name of the parent in the request. It may be empty. It is used only if the object is
	// unknown and the parent's kind is above the object's kind.
	Parent string
}

// OpenFGACheck holds one check for OpenFGA.
type OpenFGACheck struct {
	Tuple

	// Context holds the contextual tuples of this request: the groups of its subject and the parents of its objects.
	Context []Tuple
}

// BuildCheck converts a request to a check for OpenFGA. It returns false if the permission is unknown, if it does not
// apply to the kind, or if the subject is inactive. The check includes only the groups for which granted returns true.
func (o *DeclaredObjects) BuildCheck(q AccessRequest, granted func(group string) bool) (c OpenFGACheck, ok bool) {
	relation, known := o.Registry.RelationOf(q.Permission)
	if !known || !slices.Contains(q.Kind.GrantablePermissions(), q.Permission) || o.Inactive(q.Subject) {
		return OpenFGACheck{}, false
	}
	c.Tuple = Tuple{q.Subject, relation, q.Object}
	if c.User == "" {
		c.User = anonymousUser
	}
	if c.Object == "" {
		c.Object = q.Kind.Type + ":" + unnamedObjectID
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

// addRequestedParent adds the parent in the request as a contextual parent of an unknown object. Each kind between the
// two gets a placeholder object.
func (o *DeclaredObjects) addRequestedParent(c *OpenFGACheck, q AccessRequest, linked map[string]bool) {
	if _, known := o.Target(q.Object); known || q.Parent == "" {
		return
	}
	object := c.Object
	for between := q.Kind.pathTo(TypeOfObject(q.Parent)); len(between) > 0; between = between[1:] {
		above := between[0].Type + ":" + unnamedObjectID
		if len(between) == 1 {
			above = q.Parent
			o.addContextualParents(c, between[0], above, "", linked)
		}
		c.Context = append(c.Context, Tuple{above, parentRelation, object})
		object = above
	}
}

// addContextualParents adds contextual tuples that link an object to its kind's root and to its namespace. It then does
// the same for each parent. OpenFGA already holds the tuples to its stored parents.
func (o *DeclaredObjects) addContextualParents(c *OpenFGACheck, k *RegisteredKind, object, namespace string, linked map[string]bool) {
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
			within := OpenFGAObject(parent.Type, "", namespace)
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

// SplitContext divides a check whose context has too many tuples; most is the limit. The subject is allowed if any
// part is allowed, because each group grants by itself. A part exceeds the limit only if the tuples that are not about
// groups already exceed it.
func (c OpenFGACheck) SplitContext(maxTuples int) []OpenFGACheck {
	var links, groups []Tuple
	for _, t := range c.Context {
		if t.Relation == memberRelation && TypeOfObject(t.Object) == TokenGroupType {
			groups = append(groups, t)
		} else {
			links = append(links, t)
		}
	}
	if len(c.Context) <= maxTuples || len(groups) == 0 || len(links) >= maxTuples {
		return []OpenFGACheck{c}
	}
	var parts []OpenFGACheck
	for some := range slices.Chunk(groups, maxTuples-len(links)) {
		parts = append(parts, OpenFGACheck{Tuple: c.Tuple, Context: slices.Concat(links, some)})
	}
	return parts
}
