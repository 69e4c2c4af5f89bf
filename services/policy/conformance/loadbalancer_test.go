package conformance

import "strings"

// fact says that a user, or what has a relation to some object, has a relation to an object.
type fact struct{ Object, Relation, User string }

// decision is a question and its answer.
type decision struct {
	fact
	Allowed bool
}

// facts are facts for the example policy, testdata/loadbalancer: a chain of owners, a role of alice's at its top, one of carol's in the middle.
func facts() []fact {
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

// parseTuples reads tuples in the way they are commonly written: object#relation@user.
func parseTuples(text string) []fact {
	var tuples []fact
	for field := range strings.FieldsSeq(text) {
		on, user, _ := strings.Cut(field, "@")
		object, relation, _ := strings.Cut(on, "#")
		tuples = append(tuples, fact{object, relation, user})
	}
	return tuples
}

// decisions are what follows from facts, for every user, action and object.
func decisions() []decision {
	objects := []string{"tenant:root", "tenant:child", "organization:o", "project:p", "loadbalancer:lb"}
	var all []decision
	for i, object := range objects {
		for _, user := range []string{"alice", "bob", "carol"} {
			all = append(all,
				decision{fact{object, "loadbalancer_get", "user:" + user}, user == "alice"},
				decision{fact{object, "loadbalancer_create", "user:" + user}, user == "carol" && i >= 3},
			)
		}
	}
	return all
}

// impossible are tuples that an engine must refuse.
func impossible() []fact {
	return parseTuples(`
		project:p#parent@tenant:root
		tenant:root#loadbalancer_get_role@role:viewer
		tenant:root#loadbalancer_get_role@user:alice
		tenant:root#loadbalancer_get@user:alice
		tenant:root#loadbalancer_get@role:viewer#subject`)
}
