package query

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"pgregory.net/rapid"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
)

// ruleChanges parses "a>b" and "-a>b".
func ruleChanges(ops string) []*inferencev1.RuleChange {
	var changes []*inferencev1.RuleChange
	for op := range strings.FieldsSeq(ops) {
		name, gone := strings.CutPrefix(op, "-")
		c := &inferencev1.RuleChange{Name: name, Remove: gone}
		if parent, child, _ := strings.Cut(name, ">"); !gone {
			c.Parent, c.Child = toRoleMessage(role(parent)), toRoleMessage(role(child))
		}
		changes = append(changes, c)
	}
	return changes
}

func TestPreviewRules(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b B1=a{u} B2=b{v} B3=c{u}")
	w.settle()
	p := must(w.PreviewRules(t.Context(), &inferencev1.PreviewRulesRequest{
		Namespace: "team", Changes: ruleChanges("-a>b b>c c>b a>ClusterRole/cluster-admin"),
	}))(t).GetPreview()
	got := fmt.Sprintf("%d %d %d: %s", p.GetCreated(), p.GetUpdated(), p.GetDeleted(), changeTexts(p.GetBindings()))
	if want := "2 0 1: DELETED B1:b; CREATED B2:c; CREATED B3:b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(p.GetNewCycles()) != 1 || roleNames(p.GetNewCycles()[0].GetRoles()) != "b c" || len(p.GetResolvedCycles()) != 0 {
		t.Errorf("cycles %v", p.GetNewCycles())
	}
	if len(p.GetRefusals()) != 1 || p.GetRefusals()[0].GetReason() != infer.ProhibitedRole || p.GetRefusals()[0].GetMessage() == "" {
		t.Errorf("refusals %v", p.GetRefusals())
	}
	var subjects []string
	for _, s := range p.GetSubjects() {
		subjects = append(subjects, fmt.Sprintf("%s +%s -%s", s.GetSubject().GetName(), roleNames(s.GetGained()), roleNames(s.GetLost())))
	}
	if text := strings.Join(subjects, "; "); text != "v +c -" { // u keeps b, by B3.
		t.Errorf("subjects %q", text)
	}
	if p.GetWrites() != 3+2 || p.GetTruncated() {
		t.Errorf("%d writes, truncated %v", p.GetWrites(), p.GetTruncated())
	}
	for name, c := range map[string]struct {
		changes []*inferencev1.RuleChange
		want    string
	}{
		"no roles":       {[]*inferencev1.RuleChange{{Name: "r"}}, `rule "r" needs a parent and a child`},
		"no role's name": {ruleChanges("a>b/c"), `rule "a>b/c"`},
	} {
		_, err := w.PreviewRules(t.Context(), &inferencev1.PreviewRulesRequest{Namespace: "team", Changes: c.changes})
		t.Log(name)
		expectRefused(t, err, connect.CodeInvalidArgument, c.want)
	}
}

// TestPreviewRulesReportsRefusedRule changes a rule and makes one. Admission would refuse both.
func TestPreviewRulesReportsRefusedRule(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b B1=a{u}")
	w.settle()
	for child, reason := range map[string]string{"ClusterRole/cluster-admin": infer.ProhibitedRole, "system:nodes": infer.ProhibitedRole, "a": infer.SelfImplication} {
		p := must(w.PreviewRules(t.Context(), &inferencev1.PreviewRulesRequest{Namespace: "team", Changes: []*inferencev1.RuleChange{
			{Name: "a>b", Parent: toRoleMessage(role("a")), Child: toRoleMessage(role(child))},
			{Name: "new", Parent: toRoleMessage(role("a")), Child: toRoleMessage(role(child))},
		}}))(t).GetPreview()
		refusals := p.GetRefusals()
		if len(refusals) != 2 || p.GetWrites() != 0 || len(p.GetBindings())+len(p.GetSubjects())+len(p.GetInferences()) != 0 {
			t.Errorf("%s: %v", child, p)
			continue
		}
		for _, r := range refusals {
			if r.GetReason() != reason || !strings.HasPrefix(r.GetMessage(), "the API server would refuse it: ") {
				t.Errorf("%s: %v", child, r)
			}
		}
	}
}

func TestPreviewBinding(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b a>c x>y B1=a{u} B2=b{u}")
	w.settle()
	ask := func(r *inferencev1.PreviewBindingRequest) string {
		r.Namespace = "team"
		p := must(w.PreviewBinding(t.Context(), r))(t).GetPreview()
		text := changeTexts(p.GetBindings())
		for _, s := range p.GetSubjects() {
			text += fmt.Sprintf(" | %s +%s -%s", s.GetSubject().GetName(), roleNames(s.GetGained()), roleNames(s.GetLost()))
		}
		return text
	}
	u, v := &inferencev1.Subject{Kind: "User", Name: "u"}, &inferencev1.Subject{Kind: "User", Name: "v"}
	for name, c := range map[string]struct {
		request *inferencev1.PreviewBindingRequest
		want    string
	}{
		"a new one":       {&inferencev1.PreviewBindingRequest{Name: "B3", Role: toRoleMessage(role("x")), Subjects: []*inferencev1.Subject{v}}, "CREATED B3:y | v +x y -"},
		"another subject": {&inferencev1.PreviewBindingRequest{Name: "B1", Role: toRoleMessage(role("a")), Subjects: []*inferencev1.Subject{u, v}}, "UPDATED B1:b; UPDATED B1:c | v +a b c -"},
		"another role":    {&inferencev1.PreviewBindingRequest{Name: "B1", Role: toRoleMessage(role("x")), Subjects: []*inferencev1.Subject{u}}, "DELETED B1:b; DELETED B1:c; CREATED B1:y | u +x y -a c"},
		"gone":            {&inferencev1.PreviewBindingRequest{Name: "B1", Remove: true}, "DELETED B1:b; DELETED B1:c | u + -a c"},
	} {
		if got := ask(c.request); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for want, r := range map[string]*inferencev1.PreviewBindingRequest{
		"needs a role":      {Name: "B9"},
		"is generated":      {Name: infer.GeneratedName("B1", role("b")), Remove: true},
		"in each namespace": {Name: "ClusterRoleBinding/B9", Role: toRoleMessage(role("x")), Subjects: []*inferencev1.Subject{v}},
	} {
		r.Namespace = "team"
		_, err := w.PreviewBinding(t.Context(), r)
		expectRefused(t, err, connect.CodeInvalidArgument, want)
	}
}

func TestPreviewRulesEqualsLaterState(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "B1=a{u} B2=b{v} B3=c{u,v} B4=d{x}")
	rapid.Check(t, func(r *rapid.T) {
		letter := rapid.SampledFrom([]string{"a", "b", "c", "d", "ClusterRole/e"})
		var ops []string
		for range rapid.IntRange(1, 5).Draw(r, "changes") {
			op := letter.Draw(r, "parent") + ">" + letter.Draw(r, "child")
			key := w.cfg.State.BindingKey("team", op)
			key.GroupResource = ruleResource()
			if _, known := w.cfg.State.Rules.Get(key); known && !strings.Contains(strings.Join(ops, " "), op) && rapid.Bool().Draw(r, "gone") {
				op = "-" + op
			}
			ops = append(ops, op)
		}
		p := must(w.PreviewRules(t.Context(), &inferencev1.PreviewRulesRequest{Namespace: "team", Changes: ruleChanges(strings.Join(ops, " "))}))(t).GetPreview()
		predicted := map[string]string{}
		for _, c := range p.GetBindings() {
			predicted[c.GetName()] = c.GetChange().String()
		}
		before := w.generatedVersions()
		w.do("team", strings.Join(ops, " "))
		w.settle()
		happened := map[string]string{}
		now := w.generatedVersions()
		for name, version := range now {
			if was, ok := before[name]; !ok {
				happened[name] = inferencev1.BindingChange_CHANGE_CREATED.String()
			} else if was != version {
				happened[name] = inferencev1.BindingChange_CHANGE_UPDATED.String()
			}
		}
		for name := range before {
			if _, ok := now[name]; !ok {
				happened[name] = inferencev1.BindingChange_CHANGE_DELETED.String()
			}
		}
		if !maps.Equal(predicted, happened) {
			r.Fatalf("%v: predicted %v, happened %v", ops, predicted, happened)
		}
	})
}
