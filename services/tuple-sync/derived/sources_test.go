package derived

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// forge publishes, as the newest state of an object, one that the API server does not have.
func (b *bed) forge(kind kinds.Kind, name string, edit func(c *event.Change, object, spec map[string]any)) {
	b.t.Helper()
	c, object := b.api[b.keyOf(kind, name)], map[string]any{}
	if err := c.Decode(&object); err != nil {
		b.t.Fatal(err)
	}
	spec, _ := object["spec"].(map[string]any)
	edit(&c, object, spec)
	var err error
	if c.Object, err = json.Marshal(object); err != nil {
		b.t.Fatal(err)
	}
	c.ResourceVersion = strconv.Itoa(b.version + 1000)
	b.take(c)
}

// A client with the watcher's rights on NATS grants nothing by a false message.
func TestNothingIsGivenOnTheWordOfTheBus(t *testing.T) {
	eve := func(c *event.Change, object, _ map[string]any) {
		c.UID = "eve"
		meta, _ := object["metadata"].(map[string]any)
		meta["uid"] = "eve"
	}
	bobs, evils, anews := "", "", ""
	for name, lie := range map[string]struct {
		kind kinds.Kind
		name string
		edit func(c *event.Change, object, spec map[string]any)
	}{
		"a subject": {kinds.PolicyBindings(), "bob", func(_ *event.Change, _, spec map[string]any) {
			subjects, _ := spec["subjects"].([]any)
			spec["subjects"] = append(subjects, map[string]any{"kind": "Group", "name": "oidc:everybody"})
		}},
		"a permission": {kinds.IAMRoles(), "viewer", func(_ *event.Change, _, spec map[string]any) {
			spec["includedPermissions"] = []any{getDoc, "a.example/docs.update"}
		}},
		"a permission of what is inherited": {kinds.IAMRoles(), "base", func(_ *event.Change, _, spec map[string]any) {
			spec["includedPermissions"] = []any{getDoc}
		}},
		"a role":               {kinds.IAMRoles(), "gone", func(c *event.Change, _, _ map[string]any) { c.Deleted = false }},
		"a user of that name":  {kinds.Users(), "carol", eve},
		"a group of that name": {kinds.Groups(), "others", eve},
		"that somebody may act": {kinds.Users(), "idle", func(_ *event.Change, object, _ map[string]any) {
			object["status"] = map[string]any{"state": "Active"}
		}},
		"a member": {kinds.GroupMemberships(), "idle-staff", func(_ *event.Change, object, spec map[string]any) {
			spec["userRef"] = map[string]any{"name": "bob"}
			object["status"] = map[string]any{"user": map[string]any{"name": "bob", "uid": bobs}}
		}},
		"an organization": {kinds.Projects(), "web", func(_ *event.Change, _, spec map[string]any) {
			spec["ownerRef"] = map[string]any{"kind": "Organization", "name": "evil"}
		}},
		"to whom a project belongs": {kinds.Projects(), "web", func(_ *event.Change, object, spec map[string]any) {
			spec["ownerRef"] = map[string]any{"kind": "Organization", "name": "evil"}
			object["status"] = map[string]any{"organization": map[string]any{"name": "evil", "uid": evils}}
		}},
		"that it belongs to another of the name": {kinds.Projects(), "lost", func(_ *event.Change, object, _ map[string]any) {
			object["status"] = map[string]any{"organization": map[string]any{"name": "anew", "uid": anews}}
		}},
		"that it was never said to whom": {kinds.Projects(), "lost", func(_ *event.Change, object, _ map[string]any) {
			delete(object, "status")
		}},
		"a target of that name": {kinds.Projects(), "web", eve},
	} {
		for _, backwards := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, backwards %t", name, backwards), func(t *testing.T) {
				b := newBed(t)
				b.liedAbout()
				b.backwards = backwards
				bobs = b.api[b.keyOf(kinds.Users(), "bob")].UID
				evils, anews = b.api[b.keyOf(kinds.Organizations(), "evil")].UID, b.api[b.keyOf(kinds.Organizations(), "anew")].UID
				before, calls := b.openFGA.holds(), len(b.openFGA.writes)
				forged := lie.edit
				if c := b.api[b.keyOf(lie.kind, lie.name)]; c.UID == "" {
					c = b.gone[b.keyOf(lie.kind, lie.name)]
					c.Deleted, c.ResourceVersion = false, strconv.Itoa(b.version+1000)
					b.take(c)
				} else {
					b.forge(lie.kind, lie.name, forged)
				}
				b.work()
				b.follow()
				for _, w := range b.openFGA.writes[calls:] { // A tuple that is removed at once was granted too.
					for _, tuple := range w.Add {
						if !slices.Contains(before, tuple.String()) {
							t.Errorf("%s was written", tuple)
						}
					}
				}
			})
		}
	}
}

// A user was confirmed once and suspended later; a forged message then reports the old state.
func TestAnOldTruthIsNotBelievedAgain(t *testing.T) {
	b := newBed(t)
	b.peopled()
	b.work()
	before := b.openFGA.holds()
	b.put(kinds.Users(), "bob", &iamv1alpha1.User{Status: iamv1alpha1.UserStatus{State: iamv1alpha1.Inactive}})
	b.work()
	without := b.openFGA.holds()
	b.forge(kinds.Users(), "bob", func(_ *event.Change, object, _ map[string]any) { delete(object, "status") })
	b.work()
	if got := b.openFGA.holds(); len(without) == len(before) || !slices.Equal(got, without) {
		t.Errorf("there was %v, then %v, and after the lie %v", before, without, got)
	}
}

// project makes one of an organization.
func (b *bed) project(name, organization string) {
	b.t.Helper()
	p := &resourcemanagerv1alpha1.Project{}
	p.Spec.OwnerRef.Name = organization
	b.put(kinds.Projects(), name, p)
}

// liedAbout declares what is worth a lie: nothing of it gives more than what peopled gives.
func (b *bed) liedAbout() {
	b.t.Helper()
	b.peopled()
	b.put(kinds.Users(), "idle", &iamv1alpha1.User{Status: iamv1alpha1.UserStatus{State: iamv1alpha1.Inactive}})
	b.put(kinds.Users(), "carol", &iamv1alpha1.User{})
	b.put(kinds.Groups(), "others", &iamv1alpha1.Group{})
	b.put(kinds.IAMRoles(), "base", &iamv1alpha1.Role{})
	b.put(kinds.IAMRoles(), "above", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{InheritedRoles: []iamv1alpha1.ScopedRoleReference{{Name: "base"}}}})
	b.put(kinds.IAMRoles(), "gone", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getDoc}}})
	for _, name := range []string{"acme", "evil", "anew"} {
		b.put(kinds.Organizations(), name, &resourcemanagerv1alpha1.Organization{})
	}
	b.project("web", "acme")
	b.project("lost", "anew")
	b.work()
	b.drop(kinds.Organizations(), "anew")
	b.put(kinds.Organizations(), "anew", &resourcemanagerv1alpha1.Organization{})
	b.join("idle-staff", "idle", "staff")
	b.bind("of-the-role-that-goes", "gone", b.subject(kinds.Users(), "bob"))
	for i, subject := range []iamv1alpha1.Subject{
		{Kind: "User", Name: "carol", UID: "eve"}, {Kind: "Group", Name: "others", Namespace: ns, UID: "eve"},
	} {
		b.bind(fmt.Sprint("of-eve-", i), "viewer", subject)
	}
	on := &iamv1alpha1.PolicyBinding{Spec: iamv1alpha1.PolicyBindingSpec{
		RoleRef: iamv1alpha1.RoleReference{Name: "viewer"}, Subjects: []iamv1alpha1.Subject{b.subject(kinds.Users(), "bob")},
	}}
	on.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "resourcemanager.miloapis.com", Kind: "Project", Name: "web", UID: "eve"}
	b.put(kinds.PolicyBindings(), "on-another", on)
	b.work()
	b.drop(kinds.IAMRoles(), "gone")
	b.work()
}
