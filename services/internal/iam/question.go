package iam

import "slices"

// nobody is the subject of who has neither a User nor an account: groups alone count.
const nobody = UserType + ":-"

// collection is the id of what stands for a request that names no object. No object has it: [Object] writes no % alone.
const collection = "%"

// Question asks whether somebody may do something to an object of a kind.
type Question struct {
	// Subject is a [User] or a [ServiceAccount], or empty.
	Subject string
	// Groups are those that the authenticator gives.
	Groups []string
	// Permission is what it takes, Kind what it is held on: that of the permission, or one above.
	Permission string
	Kind       *Kind
	// Namespace is that of the request. It is a parent where namespaces are registered as such; an object that is known knows its own.
	Namespace string
	// Object is what [Object] names; empty if the request names none.
	Object string
	// Parent is what the request says that the object is of, as [Object] names it; it may be empty. It counts where nothing is
	// known of the object, and where its kind is above that of the object.
	Parent string
}

// Check is what to ask OpenFGA.
type Check struct {
	Tuple

	// Context are tuples that are true of the request: to which groups its subject belongs, and what the objects are of.
	Context []Tuple
}

// Check puts a question in OpenFGA's words; there are none for what can be allowed to nobody, nor for who may not act, whatever
// his groups. Of
// the groups it asks for those that are known to be in a grant.
func (o *Objects) Check(q Question, granted func(group string) bool) (c Check, ok bool) {
	relation, known := o.Registry.Relation(q.Permission)
	if !known || !slices.Contains(q.Kind.AtAndBelow(), q.Permission) || o.Inactive(q.Subject) {
		return Check{}, false
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
			c.Context = append(c.Context, Tuple{c.User, memberRelation, TokenGroup(group)})
		}
	}
	linked := map[string]bool{}
	o.link(&c, q.Kind, c.Object, q.Namespace, linked)
	o.claim(&c, q, linked)
	slices.SortFunc(c.Context, Tuple.Compare)
	c.Context = slices.Compact(c.Context)
	return c, true
}

// claim says that an object of which nothing is known is of what the request says. What is between them stands for nothing else.
func (o *Objects) claim(c *Check, q Question, linked map[string]bool) {
	if _, known := o.Target(q.Object); known || q.Parent == "" {
		return
	}
	object := c.Object
	for between := q.Kind.wayTo(TypeOf(q.Parent)); len(between) > 0; between = between[1:] {
		above := between[0].Type + ":" + collection
		if len(between) == 1 {
			above = q.Parent
			o.link(c, between[0], above, "", linked)
		}
		c.Context = append(c.Context, Tuple{above, parentRelation, object})
		object = above
	}
}

// link says what an object is of: its kind, its namespace, and its stored parents with what these are of.
func (o *Objects) link(c *Check, k *Kind, object, namespace string, linked map[string]bool) {
	if linked[object] {
		return
	}
	linked[object] = true
	found, there := o.Target(object)
	if there {
		namespace = found.Namespace
	}
	c.Context = append(c.Context, Tuple{Root(k.Type), rootRelation, object})
	for _, parent := range k.Parents {
		if parent.Type == Type("", "Namespace") && namespace != "" {
			within := Object(parent.Type, "", namespace)
			c.Context = append(c.Context, Tuple{within, parentRelation, object})
			o.link(c, parent, within, "", linked)
		}
	}
	for _, above := range o.parents(k, found) {
		if parent, ok := o.Registry.Kind(TypeOf(above)); ok {
			o.link(c, parent, above, "", linked)
		}
	}
}

// Split asks in parts what is more than can be asked at once: who may by one of the groups may, whatever the others. Each part has
// at most so many tuples, unless what the objects are of is more.
func (c Check) Split(most int) []Check {
	var links, groups []Tuple
	for _, t := range c.Context {
		if t.Relation == memberRelation && TypeOf(t.Object) == TokenGroupType {
			groups = append(groups, t)
		} else {
			links = append(links, t)
		}
	}
	if len(c.Context) <= most || len(groups) == 0 || len(links) >= most {
		return []Check{c}
	}
	var parts []Check
	for some := range slices.Chunk(groups, most-len(links)) {
		parts = append(parts, Check{Tuple: c.Tuple, Context: slices.Concat(links, some)})
	}
	return parts
}
