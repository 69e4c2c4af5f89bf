package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// tell is a plan in words, in the order in which it is carried out.
func tell(p Plan) []string {
	var told []string
	entry := func(when string, s Step, e *Entry) {
		if e != nil {
			told = append(told, strings.TrimSpace(fmt.Sprintf("%s %s %s%v %s", when, s.Key.Name, e.Record.StoreID, e.Record.Tuples, e.Condition.Reason)))
		}
	}
	for _, s := range p.Steps {
		if s.Hold {
			told = append(told, "hold "+s.Key.Name)
		}
	}
	for _, s := range p.Steps {
		entry("before", s, s.Before)
	}
	for _, t := range p.Write {
		told = append(told, "write "+t.String()+t.Condition+t.Context)
	}
	for _, t := range p.Remove {
		told = append(told, "remove "+t.String())
	}
	for _, s := range p.Steps {
		entry("after", s, s.After)
	}
	for _, s := range p.Steps {
		if s.Release {
			told = append(told, "release "+s.Key.Name)
		}
	}
	return told
}

func (o Owner) with(edit func(*Owner)) Owner {
	edit(&o)
	return o
}

func deleting(o *Owner)  { o.Deleting = true }
func free(o *Owner)      { o.Held = false }
func syncing(o *Owner)   { o.Condition = Condition{Reason: Syncing} }
func homeless(o *Owner)  { o.Home = "" }
func stray(o *Owner)     { o.Home, o.Stray = "", true }
func unjudged(o *Owner)  { o.Judged, o.Live = false, false }
func elsewhere(o *Owner) { o.Home = "R" }
func synced(n int) func(*Owner) {
	return func(o *Owner) {
		o.Condition = Condition{OK: true, Reason: Synced, Message: fmt.Sprintf("The store holds all tuples: %d.", n), Generation: 1}
	}
}

func TestThePlanForAStore(t *testing.T) {
	c1, c2 := t1.under("from_office", `{"floor":1}`), t1.under("from_office", `{"floor":2}`)
	for name, c := range map[string]struct {
		owners  []Owner
		noModel bool
		found   []Tuple
		store   string
		want    []string
	}{
		"a new owner is held first": {
			owners: []Owner{owner("a", t1).with(free)},
			want:   []string{"hold a", "before a S[doc:1#viewer@user:1] Syncing", "write doc:1#viewer@user:1", "after a S[doc:1#viewer@user:1] Synced"},
		},
		"an owner in step is left alone": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(synced(1))},
		},
		"an owner without tuples is only told so": {
			owners: []Owner{owner("a").with(free)},
			want:   []string{"after a [] Synced"},
		},
		"additions are recorded before, removals after": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t2, t3)},
			want: []string{
				"before a S[doc:1#viewer@user:1 doc:2#viewer@user:1 doc:3#viewer@user:1] Syncing",
				"write doc:1#viewer@user:1", "remove doc:3#viewer@user:1", "after a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Synced",
			},
		},
		"what was left half-done is written again": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t1, t2).with(syncing)},
			want: []string{
				"before a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing",
				"write doc:1#viewer@user:1", "write doc:2#viewer@user:1", "after a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Synced",
			},
		},
		"what was left half-done and is there is only told": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(syncing)}, found: []Tuple{t1},
			want: []string{"after a S[doc:1#viewer@user:1] Synced"},
		},
		"what somebody took out of the store is written again": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t1, t2).with(synced(2))}, found: []Tuple{t1},
			want: []string{
				"before a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing", "write doc:2#viewer@user:1",
				"after a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Synced",
			},
		},
		"what somebody gave another condition is written again": {
			owners: []Owner{owner("a", c1).recorded("S", c1).with(synced(1))}, found: []Tuple{c2},
			want: []string{
				"before a S[doc:1#viewer@user:1] Syncing", `write doc:1#viewer@user:1from_office{"floor":1}`, "after a S[doc:1#viewer@user:1] Synced",
			},
		},
		"another condition replaces the first": {
			owners: []Owner{owner("a", c2).recorded("S", c1)},
			want: []string{
				"before a S[doc:1#viewer@user:1] Syncing", `write doc:1#viewer@user:1from_office{"floor":2}`, "after a S[doc:1#viewer@user:1] Synced",
			},
		},
		"a tuple goes with its last owner, and the other vouches for it": {
			owners: []Owner{owner("a").recorded("S", t1), owner("b", t1).recorded("S", t1).with(synced(1))},
			want: []string{
				"before a S[doc:1#viewer@user:1] Syncing", "before b S[doc:1#viewer@user:1] Syncing", "write doc:1#viewer@user:1",
				"after a [] Synced", "after b S[doc:1#viewer@user:1] Synced",
			},
		},
		"a deleted owner's tuples go, then its record, then the finalizer": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(deleting)},
			want:   []string{"before a S[doc:1#viewer@user:1] Syncing", "remove doc:1#viewer@user:1", "after a [] Removed", "release a"},
		},
		"a deleted owner without tuples is released": {
			owners: []Owner{owner("a", t1).with(deleting)}, want: []string{"release a"},
		},
		"a deleted Store stays while others need it": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(synced(1)).with(func(o *Owner) { o.Deleting, o.Needed = true, true })},
		},
		"a deleted Store that was never held gets nothing new": {
			owners: []Owner{owner("a", t1).with(free).with(func(o *Owner) { o.Deleting, o.Needed = true, true })},
			want:   []string{"after a [] Invalid"},
		},
		"an object whose Store is gone goes without a call": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(deleting).with(stray)},
			want:   []string{"after a [] Removed", "release a"},
		},
		"an object that left for a Store that is not there takes its tuples along": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(stray).with(func(o *Owner) { o.Claimed = true })},
			want:   []string{"before a S[doc:1#viewer@user:1] Syncing", "remove doc:1#viewer@user:1", "after a [] Syncing"},
		},
		"a living object whose Store is gone keeps what it has": {
			owners: []Owner{owner("a", t2).recorded("S", t1).with(stray)}, want: []string{"after a S[doc:1#viewer@user:1] StoreNotFound"},
		},
		"an object that belongs elsewhere leaves": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(elsewhere)},
			want:   []string{"before a S[doc:1#viewer@user:1] Syncing", "remove doc:1#viewer@user:1", "after a [] Syncing"},
		},
		"an object that has not left its old store yet has to wait": {
			owners: []Owner{owner("a", t1).recorded("R", t1)},
		},
		"an object whose Store has no store waits, once store-sync has ruled": {
			store: "none", owners: []Owner{owner("a", t1).with(homeless), owner("b", t1).with(homeless).with(unjudged)},
			want: []string{"after a [] Pending"},
		},
		"an object whose Store lost sight of its store stays as it is": {
			owners: []Owner{owner("a", t2).recorded("S", t1).with(homeless).with(unjudged)},
		},
		"what was deleted past us goes if nobody else wants it": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t1, t2).with(func(o *Owner) { o.Gone = true }), owner("b", t1).recorded("S", t1).with(synced(1))},
			found:  []Tuple{t1, t2}, want: []string{"remove doc:2#viewer@user:1"},
		},
		"what was deleted past us long ago is not looked for again": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(func(o *Owner) { o.Gone = true })}, found: []Tuple{},
		},
		"an object that cannot be changed keeps its tuples": {
			owners: []Owner{owner("a", t2).recorded("S", t1).with(func(o *Owner) { o.Stuck = true }), owner("b").recorded("S", t1)},
			want:   []string{"before b S[doc:1#viewer@user:1] Syncing", "write doc:1#viewer@user:1", "after b [] Synced"},
		},
		"without a model nothing is added and nothing lost": {
			noModel: true, owners: []Owner{owner("a", t1, t2).recorded("S", t1)},
			want: []string{"after a S[doc:1#viewer@user:1] Pending"},
		},
		"without a model what was left half-done stays so": {
			noModel: true, owners: []Owner{owner("a", t1).recorded("S", t1).with(syncing)},
			want: []string{"after a S[doc:1#viewer@user:1] Syncing"},
		},
		"without a model tuples can still be removed": {
			noModel: true, owners: []Owner{owner("a", t1).recorded("S", t1, t2).with(synced(2))},
			want: []string{
				"before a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing", "remove doc:2#viewer@user:1", "after a S[doc:1#viewer@user:1] Synced",
			},
		},
		"an invalid tuple holds nothing up": {
			owners: []Owner{owner("a", t1, tx, t2)},
			want: []string{
				"before a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing", "write doc:1#viewer@user:1", "write doc:2#viewer@user:1",
				"after a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Invalid",
			},
		},
		"a tuple whose types are on their way waits in silence": {
			owners: []Owner{owner("a", tx).with(unjudged)},
		},
		"a tuple whose module was left out waits and says so": {
			owners: []Owner{owner("a", tx).with(func(o *Owner) { o.Live = false })}, want: []string{"after a [] Pending"},
		},
		"a tuple that the model no longer allows goes": {
			owners: []Owner{owner("a", tx).recorded("S", tx)},
			want:   []string{"before a S[ship:1#captain@user:1] Syncing", "remove ship:1#captain@user:1", "after a [] Invalid"},
		},
		"nonsense in a record is not asked of OpenFGA": {
			owners: []Owner{owner("a").recorded("S", tup("doc:1:2", "x y", "nobody"))},
			want:   []string{"before a S[doc:1:2#x y@nobody] Syncing", "after a [] Synced"},
		},
		"a finalizer that somebody took off comes back": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(synced(1)).with(free)}, want: []string{"hold a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{StoreID: "S", Owners: c.owners, Model: testModel(t)}
			if c.noModel {
				in.Model = nil
			}
			if c.store == "none" {
				in.StoreID = ""
			}
			if c.found != nil {
				in.Found = map[ID]Tuple{}
				for _, found := range c.found {
					in.Found[found.ID] = found
				}
			}
			p := Make(in)
			if got := tell(p); !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
			if p.Idle() != (len(c.want) == 0) {
				t.Errorf("idle is %v", p.Idle())
			}
		})
	}
}

func TestTheStatusNamesTheStoreThatRefusesEverything(t *testing.T) {
	o := owner("a", tx)
	in := Input{StoreID: "S", Owners: []Owner{o}, Model: testModel(t)}
	first := Make(in).Steps[0].After
	if first == nil || first.Named != "S" || len(first.Record.Tuples) != 0 {
		t.Fatalf("recorded is %+v", first)
	}
	o.Condition, o.Named = first.Condition, "R" // As another store said word for word.
	in.Owners = []Owner{o}
	if again := Make(in).Steps[0].After; again == nil || again.Named != "S" {
		t.Errorf("then recorded is %+v", again)
	}
	o.Named = "S"
	in.Owners = []Owner{o}
	if p := Make(in); !p.Idle() {
		t.Errorf("in the end there is still to do: %+v", p.Steps[0].After)
	}
}
