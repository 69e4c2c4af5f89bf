package conformance

import "strings"

// relationshipTuple is a relationship: a user, or a userset of another object, has a relation to an object.
type relationshipTuple struct{ Object, Relation, User string }

// decision is a question and its answer.
type decision struct {
	relationshipTuple
	Allowed bool
}

// facts returns facts for the example policy, testdata/loadbalancer: a chain of owners, a role of alice at its top, and
// one of carol in the middle.
func facts() []relationshipTuple {
	return parseTuples(`
		tenant:child#parent@tenant:root
		organization:o#parent@tenant:child
		project:p#parent@organization:o
		loadbalancer:lb#owner@project:p
		role:viewer#subject@user:alice
		tenant:root#loadbalancer_get_role@role:viewer#subject
		role:maker#subject@user:carol
		project:p#loadbalancer_create_role@role:maker#subject`)
}

// parseTuples reads tuples in the usual notation: object#relation@user.
func parseTuples(text string) []relationshipTuple {
	var tuples []relationshipTuple
	for field := range strings.FieldsSeq(text) {
		on, user, _ := strings.Cut(field, "@")
		object, relation, _ := strings.Cut(on, "#")
		tuples = append(tuples, relationshipTuple{object, relation, user})
	}
	return tuples
}

// decisions returns the expected answers for every user, action and object.
func decisions() []decision {
	objects := []string{"tenant:root", "tenant:child", "organization:o", "project:p", "loadbalancer:lb"}
	var all []decision
	for i, object := range objects {
		for _, user := range []string{"alice", "bob", "carol"} {
			all = append(all,
				decision{relationshipTuple{object, "loadbalancer_get", "user:" + user}, user == "alice"},
				decision{relationshipTuple{object, "loadbalancer_create", "user:" + user}, user == "carol" && i >= 3},
			)
		}
	}
	return all
}

// impossible returns tuples that an engine must reject.
func impossible() []relationshipTuple {
	return parseTuples(`
		project:p#parent@tenant:root
		tenant:root#loadbalancer_get_role@role:viewer
		tenant:root#loadbalancer_get_role@user:alice
		tenant:root#loadbalancer_get@user:alice
		tenant:root#loadbalancer_get@role:viewer#subject`)
}
