package projection

import (
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

func TestParseRoleRelation(t *testing.T) {
	for text, want := range map[string]bool{
		"role#assignee": true, "crew#member": true, "role": false, "#assignee": false, "role#": false, "a#b#c": false, "a:b#c": false, "a b#c": false, "": false,
	} {
		if _, ok := ParseRoleRelation(text); ok != want {
			t.Errorf("%q is one: %t", text, !want)
		}
	}
}

func TestParseTupleInvertsLinkTuple(t *testing.T) {
	r := RoleRelation{"role", "assignee"}
	for name, test := range map[string]struct {
		parent, child infer.Role
		want          string
	}{
		"roles":          {infer.Role{Name: "admin"}, infer.Role{Name: "viewer"}, "role:team/viewer#assignee@role:team/admin#assignee"},
		"cluster roles":  {infer.Role{Name: "admin", Cluster: true}, infer.Role{Name: "view", Cluster: true}, "role:team/ClusterRole/view#assignee@role:team/ClusterRole/admin#assignee"},
		"odd characters": {infer.Role{Name: "system:a#b@c *"}, infer.Role{Name: "x.y"}, "role:team/x.y#assignee@role:team/system%3Aa%23b%40c+%2A#assignee"},
	} {
		t.Run(name, func(t *testing.T) {
			l := roleLink{r.objectName("team", test.parent), r.objectName("team", test.child)}
			key := r.linkTuple(l)
			if got := key.GetObject() + "#" + key.GetRelation() + "@" + key.GetUser(); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
			if namespace, again, ours := r.parseTuple(key); !ours || namespace != "team" || again != l {
				t.Errorf("read as %s, %v, %t", namespace, again, ours)
			}
		})
	}
}

func TestParseTupleIgnoresForeignTuples(t *testing.T) {
	r := RoleRelation{"role", "assignee"}
	for name, key := range map[string]*openfgav1.TupleKey{
		"a user":             {Object: "role:team/a", Relation: "assignee", User: "user:ann"},
		"another namespace":  {Object: "role:team/a", Relation: "assignee", User: "role:other/b#assignee"},
		"no namespace":       {Object: "role:a", Relation: "assignee", User: "role:b#assignee"},
		"another relation":   {Object: "role:team/a", Relation: "owner", User: "role:team/b#assignee"},
		"of another one":     {Object: "role:team/a", Relation: "assignee", User: "role:team/b#owner"},
		"another type":       {Object: "team:team/a", Relation: "assignee", User: "role:team/b#assignee"},
		"one with condition": {Object: "role:team/a", Relation: "assignee", User: "role:team/b#assignee", Condition: &openfgav1.RelationshipCondition{Name: "c"}},
	} {
		if _, _, ours := r.parseTuple(key); ours {
			t.Errorf("%s: %v is taken for ours", name, key)
		}
	}
	if got := r.objectName("n", infer.Role{Name: strings.Repeat("a", maxObject)}); len(got) <= maxObject {
		t.Errorf("%s fits", got)
	}
}
