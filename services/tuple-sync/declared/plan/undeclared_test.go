package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// describe is u in words.
func (u UndeclaredTuple) describe() string {
	names := []string{"unmanaged", "to be removed", "to be replaced", "contested", "kept"}
	var by []string
	for _, o := range u.Recorders {
		by = append(by, o.Key.Name)
	}
	return fmt.Sprintf("%s%s %s [%s] %s", u.ID, u.Condition, names[u.Fate], strings.Join(by, " "), u.Reason)
}

func TestFindUndeclaredTuples(t *testing.T) {
	conditioned := withRelation(t1, "from_office", `{"floor":1}`)
	for name, c := range map[string]struct {
		owners  []Owner
		noModel bool
		want    []string
	}{
		"what is declared is no matter, be it written or not": {owners: []Owner{owner("a", t1, t2).recorded("S", t1)}},
		"nor what waits for its module":                       {owners: []Owner{owner("a", t1, t2)}, noModel: true},
		"nor what moves in from another store":                {owners: []Owner{owner("a", t1, t2).recorded("R", t1, t2)}},
		"nor that of a Store which others still need":         {owners: []Owner{owner("a", t1, t2).recorded("S", t1, t2).with(deletingOwner).with(func(o *Owner) { o.HasDependents = true })}},
		"what nobody knows of stays": {
			owners: []Owner{owner("a", t1).recorded("S", t1)},
			want:   []string{"doc:2#viewer@user:1 unmanaged [] Other software wrote it, and tuple-sync leaves it alone."},
		},
		"what others record elsewhere is none of theirs here": {
			owners: []Owner{owner("a", t1).recorded("S", t1), owner("b", t2).recorded("R", t2).with(ownerInOtherStore)},
			want:   []string{"doc:2#viewer@user:1 unmanaged [] Other software wrote it, and tuple-sync leaves it alone."},
		},
		"what is taken out of a spec goes": {
			owners: []Owner{owner("a", t1).recorded("S", t1, t2)},
			want:   []string{"doc:2#viewer@user:1 to be removed [a] The object does not declare it any more."},
		},
		"what goes with its owner": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t1, t2).with(deletingOwner)},
			want: []string{
				"doc:1#viewer@user:1 to be removed [a] The object that declared it is being deleted.",
				"doc:2#viewer@user:1 to be removed [a] The object that declared it is being deleted.",
			},
		},
		"what went past us": {
			owners: []Owner{owner("a", t1).recorded("S", t1), owner("b").recorded("S", t2).with(func(o *Owner) { o.Deleted = true }).with(syncing)},
			want:   []string{"doc:2#viewer@user:1 to be removed [b] The object that declared it was deleted."},
		},
		"what moves out": {
			owners: []Owner{owner("a", t1).recorded("S", t1), owner("b", t2).recorded("S", t2).with(ownerInOtherStore)},
			want:   []string{"doc:2#viewer@user:1 to be removed [b] The object that declared it refers to another Store now."},
		},
		"what one lets go and another declares is declared": {
			owners: []Owner{owner("a", t1).recorded("S", t1, t2), owner("b", t2).recorded("S", t2)},
		},
		"what may still be written by another replica": {
			owners: []Owner{owner("a", t1).recorded("S", t1, t2).with(ownerWithIntent)},
			want:   []string{"doc:2#viewer@user:1 contested [a] Tuples are being written by ."},
		},
		"what is declared with another condition": {
			owners: []Owner{owner("a", conditioned, t2).recorded("S", conditioned, t2)},
			want:   []string{"doc:1#viewer@user:1 to be replaced [a] models.g/a declares it with another condition."},
		},
		"what is declared so and waits for the model": {
			owners: []Owner{owner("a", conditioned, t2)}, noModel: true,
			want: []string{"doc:1#viewer@user:1 unmanaged [] Other software wrote it, and tuple-sync leaves it alone."},
		},
		"what was recorded before the store was lost from sight": {
			owners: []Owner{owner("a", t1).recorded("S", t1), owner("b").recorded("S", t2).with(ownerWithoutStore)},
			want:   []string{"doc:2#viewer@user:1 kept [b] The present tuples of models.g/b for this store are not known yet."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, held := Input{StoreID: "S", Owners: c.owners, Model: testModel(t)}, []tuple.Tuple{t1, t2}
			if c.noModel {
				in.Model = nil
			}
			var got []string
			found := FindUndeclaredTuples(in, held)
			for _, u := range found {
				got = append(got, u.describe())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s", strings.Join(got, "\n  "))
			}
			compareFateWithPlan(t, in, held, found)
		})
	}
}

// compareFateWithPlan compares what is said of tuples with what is done to them.
func compareFateWithPlan(t *testing.T, in Input, held []tuple.Tuple, found []UndeclaredTuple) {
	t.Helper()
	in.Observed = map[tuple.ID]tuple.Tuple{}
	for _, h := range held {
		in.Observed[h.ID] = h
	}
	p := DecideStore(in)
	for _, u := range found {
		has := func(list []tuple.Tuple) bool {
			return slices.ContainsFunc(list, func(t tuple.Tuple) bool { return t.ID == u.ID })
		}
		if goes := u.Fate == ToBeRemoved || u.Fate == Contested; has(p.Remove) != goes || has(p.Write) != (u.Fate == ToBeReplaced) {
			t.Errorf("%s, and the plan removes %v and writes %v", u.describe(), p.Remove, p.Write)
		}
	}
	for _, r := range p.Remove {
		if !slices.ContainsFunc(found, func(u UndeclaredTuple) bool { return u.ID == r.ID }) {
			t.Errorf("the plan removes %s, which is not told of", r)
		}
	}
}
