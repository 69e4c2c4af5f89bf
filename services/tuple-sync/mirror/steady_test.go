package mirror

import (
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// That an object is in step is not found out again as long as nothing changes: then it is.
func TestWhatWasInStepIsNotSoForEver(t *testing.T) {
	for name, change := range map[string]func(b *bed, group string){
		"what is declared": func(b *bed, _ string) { b.join("m", "bob", "staff") },
		"what is there": func(b *bed, group string) {
			b.copy.wrote("store", group, nil, []iam.Tuple{{User: iam.User("alice"), Relation: "member", Object: group}})
		},
		"what is sure":       func(b *bed, group string) { b.copy.doubt(group) },
		"which store":        func(b *bed, _ string) { b.copy.forget() },
		"what is registered": func(b *bed, _ string) { b.State.revision.Add(1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.put(kinds.Users(), "alice", &iamv1alpha1.User{})
			b.put(kinds.Users(), "bob", &iamv1alpha1.User{})
			b.put(kinds.Groups(), "staff", &iamv1alpha1.Group{})
			b.join("m", "alice", "staff")
			b.work()
			group := iam.GroupType + ":" + b.api[b.keyOf(kinds.Groups(), "staff")].UID
			now := func() *snapshot {
				n, err := b.declared(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if !b.copy.holds(now(), group) || !b.copy.isSteady(now(), group) {
				t.Fatal("the group is not in step")
			}
			change(b, group)
			if b.copy.isSteady(now(), group) {
				t.Error("it is taken to be in step for what was found out before")
			}
		})
	}
}

// What is said of objects, however often, makes nobody find out anew what follows from them.
func TestWhatIsSaidOfAnObjectLeavesAllInStep(t *testing.T) {
	b := newBed(t)
	b.put(kinds.Users(), "alice", &iamv1alpha1.User{})
	b.put(kinds.Groups(), "staff", &iamv1alpha1.Group{})
	b.join("m", "alice", "staff")
	b.work()
	before := b.State.changes()
	m, _ := b.State.memberships.rows.Get(b.keyOf(kinds.GroupMemberships(), "m"))
	said := m.Value.DeepCopy()
	said.Labels, said.Status.Conditions = map[string]string{"a": "b"}, nil
	b.put(kinds.GroupMemberships(), "m", said)
	if is, _ := b.State.memberships.rows.Get(m.Key); is.ResourceVersion == m.ResourceVersion || b.State.changes() != before {
		t.Errorf("it is version %s and counts as change %d, want another than %s and %d", is.ResourceVersion, b.State.changes(), m.ResourceVersion, before)
	}
	said.Status.User = &iamv1alpha1.Member{Name: "alice", UID: "another"}
	b.put(kinds.GroupMemberships(), "m", said)
	if b.State.changes() == before {
		t.Error("for whom it is counts as nothing")
	}
}
