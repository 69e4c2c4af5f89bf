package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// day returns a time in so many days.
func day(n int) time.Time { return time.Unix(int64(n)*24*3600, 0).UTC() }

// removal is a tuple that was written and removed on these days.
func removal(t tuple.Tuple, written, removed int) RemovedTuple {
	return RemovedTuple{t.ID, day(written), day(removed)}
}

func (r RemovedTuples) describe() string {
	var list []string
	for _, l := range r.List {
		list = append(list, fmt.Sprintf("%s %d-%d", l.Object, l.Written.Unix()/24/3600, l.Removed.Unix()/24/3600))
	}
	return fmt.Sprintf("%s since %d, truncated %t", strings.Join(list, ", "), r.Since.Unix()/24/3600, r.Truncated)
}

func TestRemovedTuplesKeepRetention(t *testing.T) {
	had := RemovedTuples{Since: day(80), List: []RemovedTuple{removal(t1, 50, 90), removal(t2, 60, 95)}}
	for name, c := range map[string]struct {
		had      RemovedTuples
		removed  []RemovedTuple
		declared []tuple.Tuple
		want     string
	}{
		"the first removal begins the record":          {RemovedTuples{}, []RemovedTuple{removal(t1, 50, 0)}, nil, "doc:1 50-100 since 100, truncated false"},
		"another one is added last":                    {had, []RemovedTuple{removal(t3, 70, 0)}, nil, "doc:1 50-90, doc:2 60-95, doc:3 70-100 since 80, truncated false"},
		"one that was written again takes its place":   {had, []RemovedTuple{removal(t1, 97, 0)}, nil, "doc:2 60-95, doc:1 97-100 since 80, truncated false"},
		"one that was restored is recorded anew":       {had, []RemovedTuple{removal(t1, 40, 0)}, nil, "doc:2 60-95, doc:1 50-100 since 80, truncated false"},
		"a tuple that is declared again is dropped":    {had, []RemovedTuple{removal(t3, 70, 0)}, []tuple.Tuple{t1}, "doc:2 60-95, doc:3 70-100 since 80, truncated false"},
		"what is older than the retention is dropped":  {RemovedTuples{Since: day(1), List: []RemovedTuple{removal(t1, 1, 60)}}, []RemovedTuple{removal(t3, 70, 0)}, nil, "doc:3 70-100 since 60, truncated false"},
		"what is missing is so until the retention":    {RemovedTuples{Since: day(80), Truncated: true}, []RemovedTuple{removal(t3, 70, 0)}, nil, "doc:3 70-100 since 80, truncated true"},
		"what is missing is forgotten after retention": {RemovedTuples{Since: day(60), Truncated: true}, []RemovedTuple{removal(t3, 70, 0)}, nil, "doc:3 70-100 since 60, truncated false"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := map[tuple.ID]tupleClaim{}
			for _, d := range c.declared {
				claims[d.ID] = tupleClaim{}
			}
			next, changed := c.had.mergeRemovals(c.removed, claims, day(100), 30*24*time.Hour)
			if got := next.describe(); !changed || got != c.want {
				t.Errorf("got %s (changed: %t), want %s", got, changed, c.want)
			}
			if _, again := next.mergeRemovals(next.List[len(next.List)-1:], claims, day(100), 30*24*time.Hour); again {
				t.Error("got another change for the same removal, want none")
			}
		})
	}
}

// random is n removals that do not pack well.
func random(n int) []RemovedTuple {
	source, list := rand.New(rand.NewPCG(1, 2)), []RemovedTuple{}
	for i := range n {
		id := tuple.ID{Object: fmt.Sprintf("doc:%x", source.Uint64()), Relation: "viewer", User: fmt.Sprintf("user:%x", source.Uint64())}
		list = append(list, RemovedTuple{id, time.Unix(0, source.Int64N(1<<60)).UTC(), day(i)})
	}
	return list
}

func TestRemovedTuplesDropEarliestBeyondLimit(t *testing.T) {
	all := random(4000)
	packed, err := RemovedTuples{Since: day(0), List: all}.packWithinLimit("S", maxRemovals)
	if err != nil || len(packed.Data) > maxRemovals || !packed.Truncated || packed.StoreID != "S" {
		t.Fatalf("got %d bytes (truncated: %t) of %s, %v", len(packed.Data), packed.Truncated, packed.StoreID, err)
	}
	got, err := UnpackRemovedTuples(packed)
	first := len(all) - len(got.List)
	if err != nil || len(got.List) < 1000 || !slices.Equal(got.List, all[first:]) || !got.Since.Equal(all[first-1].Removed) {
		t.Errorf("got %d removals since %s, %v, want the last ones", len(got.List), got.Since, err)
	}
	if c := RemovalsRecordedCondition(packed, 1); c.OK || c.Reason != "Truncated" || !strings.Contains(c.Message, got.Since.UTC().Format(time.RFC3339)) {
		t.Errorf("got condition %+v", c)
	}
	if empty, err := (RemovedTuples{List: all}).packWithinLimit("S", 0); err != nil || len(empty.Data) > 0 || !empty.Truncated {
		t.Errorf("without room got %+v, %v", empty, err)
	}
}

func TestUnreadableRemovedTuplesStartOver(t *testing.T) {
	r, err := UnpackRemovedTuples(&corev1alpha1.RemovedTuples{StoreID: "S", Encoding: corev1alpha1.EncodingZstd, Data: []byte("noise")})
	next, _ := r.mergeRemovals([]RemovedTuple{removal(t1, 1, 0)}, nil, day(100), time.Hour)
	if got, want := next.describe(), "doc:1 1-100 since 100, truncated true"; err == nil || got != want {
		t.Errorf("got %s, %v, want %s and an error", got, err, want)
	}
}

func TestRestoredTuplesAreRemovedUnlessDesired(t *testing.T) {
	store, module := owner("s").with(func(o *Owner) { o.IsStore = true }).recorded("S"), owner("a", t1).recorded("S", t1)
	iamTuple := parseTuple("iam.miloapis.com/group:1", "member", "user:1")
	for name, c := range map[string]struct {
		owners   []Owner
		held     tuple.Tuple
		written  int
		noModel  bool
		reserved bool
		want     bool
	}{
		"as it was":                         {owners: []Owner{store, module}, held: t2, written: 50, want: true},
		"from before, as an earlier backup": {owners: []Owner{store, module}, held: t2, written: 40, want: true},
		"without a model":                   {owners: []Owner{store, module}, held: t2, written: 50, noModel: true, want: true},
		"written later by others":           {owners: []Owner{store, module}, held: t2, written: 51},
		"of nobody":                         {owners: []Owner{store, module}, held: t3, written: 50},
		"declared again":                    {owners: []Owner{store, owner("a", t2)}, held: t2, written: 50},
		"declared again, without a model":   {owners: []Owner{store, owner("a", t2)}, held: t2, written: 50, noModel: true},
		"declared by a text not in force":   {owners: []Owner{store, owner("a", t2).with(func(o *Owner) { o.Outdated = true })}, held: t2, written: 50, want: true},
		"declared by what moves in":         {owners: []Owner{store, owner("a", t2).recorded("R", t2)}, held: t2, written: 50},
		"of IAM":                            {owners: []Owner{store}, held: iamTuple, written: 50, reserved: true},
		"of IAM's type, in another store":   {owners: []Owner{store}, held: iamTuple, written: 50, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{StoreID: "S", Owners: c.owners, Model: testModel(t), Reserved: c.reserved, Observed: map[tuple.ID]tuple.Tuple{t1.ID: t1, c.held.ID: c.held}}
			in.Removals = RemovedTuples{List: []RemovedTuple{removal(t2, 50, 90), removal(iamTuple, 50, 90)}}
			in.Written = map[tuple.ID]time.Time{t1.ID: day(1), c.held.ID: day(c.written)}
			if c.noModel {
				in.Model = nil
			}
			p := DecideStore(in)
			if removed := slices.Contains(p.Remove, c.held); removed != c.want || (len(p.Restored) == 1) != c.want {
				t.Errorf("got %v removed, %v restored; want %t", p.Remove, p.Restored, c.want)
			}
			held := []tuple.Tuple{c.held}
			found := FindUndeclaredTuples(in, held)
			if told := len(found) == 1 && strings.HasPrefix(found[0].Reason, "Restored: it was removed on 1970-04-01"); told != c.want {
				t.Errorf("got undeclared %+v, want restored: %t", found, c.want)
			}
			if !c.noModel {
				compareFateWithPlan(t, in, append(held, t1), found)
			}
		})
	}
}

func TestDecideStoreRecordsRemovals(t *testing.T) {
	isStore := func(o *Owner) { o.IsStore = true }
	written := map[tuple.ID]time.Time{t2.ID: day(50)}
	for name, c := range map[string]struct {
		store, module Owner
		want          string
	}{
		"of a module, with one write":    {owner("s").with(isStore).recorded("S"), owner("a", t1).recorded("S", t1, t2), "intend s doc:2 since 100, intend a"},
		"of the Store, with no more":     {owner("s").with(isStore).recorded("S", t2), owner("a", t1).recorded("S", t1), "intend s doc:2 since 100"},
		"not what OpenFGA does not hold": {owner("s").with(isStore).recorded("S"), owner("a").recorded("S", t1), "intend a"},
		"of a module that was deleted":   {owner("s").with(isStore).recorded("S"), owner("a", t2).recorded("S", t2).with(deletingOwner), "intend s doc:2 since 100, intend a"},
		"not in a Store that cannot be changed": {
			owner("s").with(isStore).recorded("S").with(func(o *Owner) { o.Unwritable = true }), owner("a").recorded("S", t2), "intend a",
		},
		"not in a Store that is being deleted": {owner("s").with(isStore).recorded("S").with(deletingOwner), owner("a").recorded("S", t2), "intend a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := DecideStore(Input{StoreID: "S", Owners: []Owner{c.store, c.module}, Model: testModel(t)})
			if err := p.RecordRemovals(RemovedTuples{}, written, day(100), 30*24*time.Hour); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range p.Actions {
				if a.Intent == nil {
					continue
				}
				line := "intend " + a.Evaluation.Owner.Key.Name
				if a.Intent.Removed != nil {
					r, err := UnpackRemovedTuples(a.Intent.Removed)
					if err != nil {
						t.Fatal(err)
					}
					line += fmt.Sprintf(" %s since %d", r.List[0].Object, r.Since.Unix()/24/3600)
				}
				got = append(got, line)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}
