package infer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func origin(h RoleHolding) string {
	return map[[2]bool]string{{true, false}: "explicit", {false, true}: "implied", {true, true}: "both"}[[2]bool{h.Explicit, h.Implied}]
}

func TestHoldersListsSubjects(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b b>c B1=a{x,group:g} B2=c{x,y} B3=b{x} B4=d{z}")
	w.do("gone=c{q}")
	now := metav1.Now()
	w.bindings["gone"].DeletionTimestamp = &now
	o := w.settle()
	var got []string
	for _, h := range o.Rules.Holders(role("c"), w.all()) {
		got = append(got, fmt.Sprintf("%s %s %s", h.Subject.Name, origin(h), strings.Join(h.Bindings, "+")))
	}
	if text := strings.Join(got, "; "); text != "g implied B1; q explicit gone; x both B1+B2+B3; y explicit B2" {
		t.Errorf("%q", text)
	}
}

func TestEffectiveRolesListsRoles(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b b>c B1=a{x} B2=b{group:g} B3=d{sa:ns:bot} B4=e{group:} B5=f{x} B6=h{sa::bot} B7=i{group:} B8=j{group:} B9=k{group:}")
	w.bindings["B4"].Subjects[0].Name = "system:serviceaccounts:ns"
	w.bindings["B5"].Subjects[0].Name = "system:serviceaccount:ns:bot"
	w.bindings["B7"].Subjects[0].Name = "system:serviceaccounts"
	w.bindings["B8"].Subjects[0].Name = "system:authenticated"
	w.bindings["B9"].Subjects[0].Name = "system:unauthenticated"
	o := w.settle()
	for name, c := range map[string]struct {
		subject string
		groups  []string
		want    string
	}{
		"alone":             {subject: "x", want: "a explicit; b implied; c implied; j explicit"},
		"in a group":        {subject: "x", groups: []string{"g"}, want: "a explicit; b both; c implied; j explicit"},
		"a group":           {subject: "group:g", want: "b explicit; c implied; j explicit"},
		"a service account": {subject: "sa:ns:bot", want: "d explicit; e explicit; f explicit; h explicit; i explicit; j explicit"},
		"a service account's user name": {
			subject: "user:system:serviceaccount:ns:bot", want: "d explicit; e explicit; f explicit; h explicit; i explicit; j explicit",
		},
		"a service account elsewhere":    {subject: "sa:other:bot", want: "i explicit; j explicit"},
		"service accounts of one":        {subject: "name:system:serviceaccounts:ns", want: "e explicit; i explicit; j explicit"},
		"all service accounts":           {subject: "name:system:serviceaccounts", want: "i explicit; j explicit"},
		"nobody in particular":           {subject: "nobody", want: "j explicit"},
		"all who have logged in":         {subject: "name:system:authenticated", want: "j explicit"},
		"nobody at all":                  {subject: "user:system:anonymous", want: "k explicit"},
		"all who have not":               {subject: "name:system:unauthenticated", want: "k explicit"},
		"somebody who says to be nobody": {subject: "x", groups: []string{"system:unauthenticated"}, want: "a explicit; b implied; c implied; k explicit"},
	} {
		var got []string
		for _, h := range o.Rules.EffectiveRoles(NewIdentity(who(c.subject), c.groups), w.all()) {
			got = append(got, h.Role.String()+" "+origin(h))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// who works as subject, and also parses "user:" and "name:" before the names of a user and of a group.
func who(text string) rbacv1.Subject {
	s := subject("x")
	if name, is := strings.CutPrefix(text, "user:"); is {
		s.Name = name
		return s
	}
	if name, is := strings.CutPrefix(text, "name:"); is {
		s.Kind, s.Name = rbacv1.GroupKind, name
		return s
	}
	return subject(text)
}

// TestHoldersCountsObsoleteGeneratedBindings has generated bindings that nothing implies any more but that still exist.
func TestHoldersCountsObsoleteGeneratedBindings(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b B1=a{x} B2=a{y}")
	o := w.settle()
	held := w.bindings[GeneratedName("B1", role("b"))]
	held.Finalizers = []string{"example.com/held"}
	deleting(held)
	w.do("-B1")
	var got []string
	for _, h := range o.Rules.Holders(role("b"), w.all()) {
		got = append(got, fmt.Sprintf("%s %s %s", h.Subject.Name, origin(h), strings.Join(h.Bindings, "+")))
	}
	if text := strings.Join(got, "; "); text != "x implied "+held.Name+"; y implied B2" {
		t.Errorf("holders %q", text)
	}
	if roles := o.Rules.EffectiveRoles(NewIdentity(subject("x"), nil), w.all()); len(roles) != 1 || roles[0].Role != role("b") || roles[0].Bindings[0] != held.Name {
		t.Errorf("effective %v", roles)
	}
	reasons, _ := o.Rules.ExplainRole(NewIdentity(subject("x"), nil), role("b"), w.all(), 5)
	if len(reasons) != 1 || reasons[0].Source.Name != held.Name || len(reasons[0].Path) != 1 {
		t.Errorf("reasons %v", reasons)
	}
	o = w.settle()
	if holders := o.Rules.Holders(role("b"), w.all()); len(holders) != 1 {
		t.Errorf("holders %v when it is empty", holders)
	}
}

func TestClusterRoleBindingGrantsButDoesNotImplyRoles(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("ClusterRole/a>b B=ClusterRole/a{x}")
	o := w.settle()
	everywhere := &Binding{Name: "B", Cluster: true, Role: role("ClusterRole/a"), Subjects: []rbacv1.Subject{subject("y"), subject("x")}}
	bindings := append(w.all(), everywhere)
	if everywhere.IsSource() {
		t.Error("it is a source")
	}
	holders := o.Rules.Holders(role("ClusterRole/a"), bindings)
	if len(holders) != 2 || strings.Join(holders[0].Bindings, " ") != "B ClusterRoleBinding/B" || strings.Join(holders[1].Bindings, " ") != "ClusterRoleBinding/B" {
		t.Errorf("holders %v", holders)
	}
	if roles := o.Rules.EffectiveRoles(NewIdentity(subject("y"), nil), bindings); len(roles) != 1 || roles[0].Role != role("ClusterRole/a") {
		t.Errorf("effective %v", roles)
	}
	if reasons, _ := o.Rules.ExplainRole(NewIdentity(subject("x"), nil), role("ClusterRole/a"), bindings, 5); len(reasons) != 2 || reasons[1].Source != everywhere {
		t.Errorf("reasons %v", reasons)
	}
	if reasons, _ := o.Rules.ExplainRole(NewIdentity(subject("y"), nil), role("b"), bindings, 5); len(reasons) != 0 {
		t.Errorf("reasons %v", reasons)
	}
}

func TestExplainRole(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b a>c b>d c>d x>d B1=a{u} B2=d{u} B3=x{group:g} B4=x{v}")
	o := w.settle()
	for limit, want := range map[int]string{
		9: "B2 by u: d; B3 by g: x d; B1 by u: a b d; B1 by u: a c d; more false",
		3: "B2 by u: d; B3 by g: x d; B1 by u: a b d; more true",
	} {
		reasons, more := o.Rules.ExplainRole(NewIdentity(subject("u"), []string{"g"}), role("d"), w.all(), limit)
		text := ""
		for _, r := range reasons {
			text += fmt.Sprintf("%s by %s: %s; ", r.Source.Name, subjectNames([]rbacv1.Subject{r.Subject}), names(r.Path))
		}
		if text += fmt.Sprintf("more %v", more); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	if reasons, more := o.Rules.ExplainRole(NewIdentity(subject("nobody"), nil), role("d"), w.all(), 5); len(reasons) > 0 || more {
		t.Errorf("subject without the role: got reasons %v", reasons)
	}
}

func TestSystemBindingDoesNotImplyRoles(t *testing.T) {
	w := newSimulatedNamespace(t)
	w.do("a>b B=a{x}")
	w.bindings["B"].Labels = map[string]string{bootstrapping: "rbac-defaults"}
	o := w.settle()
	if got := o.Rules.EffectiveRoles(NewIdentity(subject("x"), nil), w.all()); len(got) != 1 || got[0].Role != role("a") {
		t.Errorf("effective %v", got)
	}
	if got := o.Rules.Holders(role("b"), w.all()); len(got) != 0 {
		t.Errorf("holders %v", got)
	}
}

// TestExplainRoleReturnsFirstReasons compares the reasons with the sorted list of all possible ones.
func TestExplainRoleReturnsFirstReasons(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newSimulatedNamespace(r)
		for range rapid.IntRange(5, 30).Draw(r, "before") {
			w.random(r)
		}
		o := w.infer()
		who := NewIdentity(subject(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(r, "who")), nil)
		role := rapid.SampledFrom(roles("a b c d e f")).Draw(r, "role")
		bindings := w.all()
		const plenty = 10_000
		all, more := o.Rules.ExplainRole(who, role, bindings, plenty)
		if more {
			r.Fatalf("more than %d reasons", plenty)
		}
		var naive []RoleReason
		for _, b := range bindings {
			subject, ok := who.MatchingSubject(b)
			if explicit, implied := o.Rules.grantsRole(b, role); ok && explicit {
				naive = append(naive, RoleReason{b, subject, []Role{role}})
			} else if ok && implied {
				paths, _ := o.Rules.PathsBetween(b.Role, role, plenty)
				for _, path := range paths {
					naive = append(naive, RoleReason{b, subject, path})
				}
			}
		}
		slices.SortFunc(naive, RoleReason.compareReason)
		if fmt.Sprint(texts(all)) != fmt.Sprint(texts(naive)) {
			r.Fatalf("%v, want %v", texts(all), texts(naive))
		}
		limit := rapid.IntRange(1, 5).Draw(r, "limit")
		some, more := o.Rules.ExplainRole(who, role, bindings, limit)
		if want := naive[:min(limit, len(naive))]; fmt.Sprint(texts(some)) != fmt.Sprint(texts(want)) || more != (len(naive) > limit) {
			r.Fatalf("%v, more: %v; want %v", texts(some), more, texts(want))
		}
	})
}

func texts(reasons []RoleReason) []string {
	var list []string
	for _, r := range reasons {
		list = append(list, fmt.Sprintf("%s %v", r.Source.Name, r.Path))
	}
	return list
}
