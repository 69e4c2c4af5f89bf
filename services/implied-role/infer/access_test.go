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

func origin(h Holding) string {
	return map[[2]bool]string{{true, false}: "explicit", {false, true}: "implied", {true, true}: "both"}[[2]bool{h.Explicit, h.Implied}]
}

func TestWhoHasARole(t *testing.T) {
	w := newWorld(t)
	w.do("a>b b>c B1=a{x,group:g} B2=c{x,y} B3=b{x} B4=d{z}")
	w.do("gone=c{q}")
	now := metav1.Now()
	w.bindings["gone"].DeletionTimestamp = &now
	o := w.settle()
	var got []string
	for _, h := range o.Rules.Holders(role("c"), w.all()) {
		got = append(got, fmt.Sprintf("%s %s %s", h.Subject.Name, origin(h), strings.Join(h.Bindings, "+")))
	}
	if text := strings.Join(got, "; "); text != "g implied B1; x both B1+B2+B3; y explicit B2" {
		t.Errorf("%q", text)
	}
}

func TestWhatRolesSomebodyHas(t *testing.T) {
	w := newWorld(t)
	w.do("a>b b>c B1=a{x} B2=b{group:g} B3=d{sa:ns:bot} B4=e{group:system:serviceaccounts:ns} B5=f{x}")
	w.bindings["B4"].Subjects[0].Name = "system:serviceaccounts:ns"
	w.bindings["B5"].Subjects[0].Name = "system:serviceaccount:ns:bot"
	o := w.settle()
	for name, c := range map[string]struct {
		subject string
		groups  []string
		want    string
	}{
		"alone":                         {subject: "x", want: "a explicit; b implied; c implied"},
		"in a group":                    {subject: "x", groups: []string{"g"}, want: "a explicit; b both; c implied"},
		"a group":                       {subject: "group:g", want: "b explicit; c implied"},
		"a service account":             {subject: "sa:ns:bot", want: "d explicit; e explicit; f explicit"},
		"a service account's user name": {subject: "system:serviceaccount:ns:bot", want: "d explicit; e explicit; f explicit"},
		"nobody":                        {subject: "nobody"},
	} {
		var got []string
		for _, h := range o.Rules.Effective(Identify(subject(c.subject), c.groups), w.all()) {
			got = append(got, h.Role.String()+" "+origin(h))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

func TestWhySomebodyHasARole(t *testing.T) {
	w := newWorld(t)
	w.do("a>b a>c b>d c>d x>d B1=a{u} B2=d{u} B3=x{group:g} B4=x{v}")
	o := w.settle()
	for limit, want := range map[int]string{
		9: "B2 by u: d; B3 by g: x d; B1 by u: a b d; B1 by u: a c d; more false",
		3: "B2 by u: d; B3 by g: x d; B1 by u: a b d; more true",
	} {
		reasons, more := o.Rules.Explain(Identify(subject("u"), []string{"g"}), role("d"), w.all(), limit)
		text := ""
		for _, r := range reasons {
			text += fmt.Sprintf("%s by %s: %s; ", r.Source.Name, subjectNames([]rbacv1.Subject{r.Subject}), names(r.Path))
		}
		if text += fmt.Sprintf("more %v", more); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	if reasons, more := o.Rules.Explain(Identify(subject("nobody"), nil), role("d"), w.all(), 5); len(reasons) > 0 || more {
		t.Errorf("nobody has it because of %v", reasons)
	}
}

func TestWhatASystemBindingGrantsImpliesNothing(t *testing.T) {
	w := newWorld(t)
	w.do("a>b B=a{x}")
	w.bindings["B"].Labels = map[string]string{bootstrapping: "rbac-defaults"}
	o := w.settle()
	if got := o.Rules.Effective(Identify(subject("x"), nil), w.all()); len(got) != 1 || got[0].Role != role("a") {
		t.Errorf("effective %v", got)
	}
	if got := o.Rules.Holders(role("b"), w.all()); len(got) != 0 {
		t.Errorf("holders %v", got)
	}
}

// TestReasonsAreTheFirstOfAll compares what is given with all ways there are, sorted.
func TestReasonsAreTheFirstOfAll(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		for range rapid.IntRange(5, 30).Draw(r, "before") {
			w.random(r)
		}
		o := w.infer()
		who := Identify(subject(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(r, "who")), nil)
		role := rapid.SampledFrom(roles("a b c d e f")).Draw(r, "role")
		bindings := w.all()
		const plenty = 10_000
		all, more := o.Rules.Explain(who, role, bindings, plenty)
		if more {
			r.Fatalf("more than %d reasons", plenty)
		}
		var naive []Reason
		for _, b := range bindings {
			subject, ok := who.In(b.Subjects)
			if explicit, implied := o.Rules.gives(b, role); ok && explicit {
				naive = append(naive, Reason{b, subject, []Role{role}})
			} else if ok && implied {
				paths, _ := o.Rules.Paths(b.Role, role, plenty)
				for _, path := range paths {
					naive = append(naive, Reason{b, subject, path})
				}
			}
		}
		slices.SortFunc(naive, Reason.compare)
		if fmt.Sprint(texts(all)) != fmt.Sprint(texts(naive)) {
			r.Fatalf("%v, want %v", texts(all), texts(naive))
		}
		limit := rapid.IntRange(1, 5).Draw(r, "limit")
		some, more := o.Rules.Explain(who, role, bindings, limit)
		if want := naive[:min(limit, len(naive))]; fmt.Sprint(texts(some)) != fmt.Sprint(texts(want)) || more != (len(naive) > limit) {
			r.Fatalf("%v, more: %v; want %v", texts(some), more, texts(want))
		}
	})
}

func texts(reasons []Reason) []string {
	var list []string
	for _, r := range reasons {
		list = append(list, fmt.Sprintf("%s %v", r.Source.Name, r.Path))
	}
	return list
}
