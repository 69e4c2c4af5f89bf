package policytest

import "strings"

// Tuple says that a user, or what has a relation to some object, has a relation to an object.
type Tuple struct{ Object, Relation, User string }

// Decision is a question and its answer.
type Decision struct {
	Tuple
	Allowed bool
}

// Tuples are facts for the example policy, testdata/loadbalancer: a chain of owners, a role of alice's at its top, one of carol's in the middle.
func Tuples() []Tuple {
	return parse(`
		tenant:child#parent@tenant:root
		organization:o#parent@tenant:child
		project:p#parent@organization:o
		loadbalancer:lb#owner@project:p
		role:viewer#subject@user:alice
		tenant:root#loadbalancer_get_role@role:viewer#subject
		role:maker#subject@user:carol
		project:p#loadbalancer_create_role@role:maker#subject`)
}

// parse reads tuples in the way they are commonly written: object#relation@user.
func parse(text string) []Tuple {
	var tuples []Tuple
	for field := range strings.FieldsSeq(text) {
		on, user, _ := strings.Cut(field, "@")
		object, relation, _ := strings.Cut(on, "#")
		tuples = append(tuples, Tuple{object, relation, user})
	}
	return tuples
}

// Decisions are what follows from [Tuples], for every user, action and object.
func Decisions() []Decision {
	objects := []string{"tenant:root", "tenant:child", "organization:o", "project:p", "loadbalancer:lb"}
	var all []Decision
	for i, object := range objects {
		for _, user := range []string{"alice", "bob", "carol"} {
			all = append(all,
				Decision{Tuple{object, "loadbalancer_get", "user:" + user}, user == "alice"},
				Decision{Tuple{object, "loadbalancer_create", "user:" + user}, user == "carol" && i >= 3},
			)
		}
	}
	return all
}

// Impossible are tuples that an engine must refuse.
func Impossible() []Tuple {
	return parse(`
		project:p#parent@tenant:root
		tenant:root#loadbalancer_get_role@role:viewer
		tenant:root#loadbalancer_get_role@user:alice
		tenant:root#loadbalancer_get@user:alice
		tenant:root#loadbalancer_get@role:viewer#subject`)
}
