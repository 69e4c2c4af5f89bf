package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// describePlan is a plan in words, in the order in which it is carried out.
func describePlan(p Plan) []string {
	var all []string
	update := func(when string, a OwnerAction, u *StatusUpdate) {
		if u != nil {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s%v %s", when, a.Evaluation.Owner.Key.Name, u.Record.StoreID, u.Record.Tuples, u.Condition.Reason)))
		}
	}
	for _, a := range p.Actions {
		if a.AddFinalizer {
			all = append(all, "add finalizer to "+a.Evaluation.Owner.Key.Name)
		}
	}
	for _, a := range p.Actions {
		update("intend", a, a.Intent)
	}
	for _, t := range p.Write {
		all = append(all, "write "+t.String()+t.Condition+t.Context)
	}
	for _, t := range p.Remove {
		all = append(all, "remove "+t.String())
	}
	for _, a := range p.Actions {
		update("commit", a, a.Commit)
	}
	for _, a := range p.Actions {
		if a.RemoveFinalizer {
			all = append(all, "remove finalizer from "+a.Evaluation.Owner.Key.Name)
		}
	}
	return all
}

func (o Owner) with(edit func(*Owner)) Owner {
	edit(&o)
	return o
}

func deletingOwner(o *Owner)            { o.Deleting = true }
func unclaimedOwner(o *Owner)           { o.HasFinalizer = false }
func syncing(o *Owner)                  { o.Condition = OwnerCondition{Reason: Syncing} }
func ownerWithoutStore(o *Owner)        { o.TargetStoreID = "" }
func unrecordedTuple(o *Owner)          { o.TargetStoreID, o.StoreMissing = "", true }
func ownerWithUncertainRecord(o *Owner) { o.Contested = time.Second }
func ownerWithIntent(o *Owner)          { o.Condition = (&Evaluation{Owner: o}).syncingCondition("") }
func ownerWithoutStoreSync(o *Owner)    { o.ModuleJudged, o.ModuleLive = false, false }
func ownerInOtherStore(o *Owner)        { o.TargetStoreID = "R" }
func synced(n int) func(*Owner) {
	return ownerWithCondition(OwnerCondition{OK: true, Reason: Synced, Message: fmt.Sprintf("The store holds all tuples: %d.", n), Generation: 1})
}

// ownerWithCondition is what its status says of an owner, whatever it becomes afterwards.
func ownerWithCondition(c OwnerCondition) func(*Owner) {
	return func(o *Owner) { o.Condition, o.Ready = c, o.ReadyCondition(c) }
}

func TestDecideStore(t *testing.T) {
	c1, c2 := withRelation(t1, "from_office", `{"floor":1}`), withRelation(t1, "from_office", `{"floor":2}`)
	for name, c := range map[string]struct {
		owners  []Owner
		noModel bool
		found   []tuple.Tuple
		store   string
		want    []string
	}{
		"a new owner is held first": {
			owners: []Owner{owner("a", t1).with(unclaimedOwner)},
			want:   []string{"add finalizer to a", "intend a S[doc:1#viewer@user:1] Syncing", "write doc:1#viewer@user:1", "commit a S[doc:1#viewer@user:1] Synced"},
		},
		"an owner in step is left alone": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(synced(1))},
		},
		"an owner without tuples is only told so": {
			owners: []Owner{owner("a").with(unclaimedOwner)},
			want:   []string{"commit a [] Synced"},
		},
		"additions are recorded before, removals after": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t2, t3)},
			want: []string{
				"intend a S[doc:1#viewer@user:1 doc:2#viewer@user:1 doc:3#viewer@user:1] Syncing",
				"write doc:1#viewer@user:1", "remove doc:3#viewer@user:1", "commit a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Synced",
			},
		},
		"what was left half-done is written again": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t1, t2).with(syncing)},
			want: []string{
				"intend a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing",
				"write doc:1#viewer@user:1", "write doc:2#viewer@user:1", "commit a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Synced",
			},
		},
		"what was left half-done and is there is only told": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(syncing)}, found: []tuple.Tuple{t1},
			want: []string{"commit a S[doc:1#viewer@user:1] Synced"},
		},
		"what somebody took out of the store is written again": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t1, t2).with(synced(2))}, found: []tuple.Tuple{t1},
			want: []string{
				"intend a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing", "write doc:2#viewer@user:1",
				"commit a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Synced",
			},
		},
		"what somebody gave another condition is written again": {
			owners: []Owner{owner("a", c1).recorded("S", c1).with(synced(1))}, found: []tuple.Tuple{c2},
			want: []string{
				"intend a S[doc:1#viewer@user:1] Syncing", `write doc:1#viewer@user:1from_office{"floor":1}`, "commit a S[doc:1#viewer@user:1] Synced",
			},
		},
		"another condition replaces the first": {
			owners: []Owner{owner("a", c2).recorded("S", c1)},
			want: []string{
				"intend a S[doc:1#viewer@user:1] Syncing", `write doc:1#viewer@user:1from_office{"floor":2}`, "commit a S[doc:1#viewer@user:1] Synced",
			},
		},
		"a tuple goes with its last owner, and the other vouches for it": {
			owners: []Owner{owner("a").recorded("S", t1), owner("b", t1).recorded("S", t1).with(synced(1))},
			want: []string{
				"intend a S[doc:1#viewer@user:1] Syncing", "intend b S[doc:1#viewer@user:1] Syncing", "write doc:1#viewer@user:1",
				"commit a [] Synced", "commit b S[doc:1#viewer@user:1] Synced",
			},
		},
		"what is handed over is not written where it is seen to be": {
			owners: []Owner{owner("a").recorded("S", t1), owner("b", t1).recorded("S", t1).with(synced(1))}, found: []tuple.Tuple{t1},
			want: []string{
				"intend a S[doc:1#viewer@user:1] Syncing", "intend b S[doc:1#viewer@user:1] Syncing",
				"commit a [] Synced", "commit b S[doc:1#viewer@user:1] Synced",
			},
		},
		"while another may still write, the record stays open, and its owner answers for all that is in it": {
			owners: []Owner{owner("a").recorded("S", t1, t2).with(ownerWithUncertainRecord), owner("b", t1).recorded("S", t1).with(synced(1))},
			found:  []tuple.Tuple{t1, t2},
			want:   []string{"intend a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing", "remove doc:2#viewer@user:1"},
		},
		"while another may still write, nobody who waits for that does anything again": {
			owners: []Owner{owner("a").recorded("S", t1, t2).with(ownerWithIntent).with(ownerWithUncertainRecord), owner("b", t1).recorded("S", t1).with(synced(1))},
			found:  []tuple.Tuple{t1},
		},
		"while another may still write, nobody is let go": {
			owners: []Owner{owner("a").recorded("S", t1).with(ownerWithIntent).with(deletingOwner).with(ownerWithUncertainRecord)}, found: []tuple.Tuple{},
		},
		"what was announced is not announced again where nothing is left to do": {
			owners: []Owner{owner("a").recorded("S", t1).with(ownerWithIntent)}, found: []tuple.Tuple{}, want: []string{"commit a [] Synced"},
		},
		"a deleted owner's tuples go, then its record, then the finalizer": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(deletingOwner)},
			want:   []string{"intend a S[doc:1#viewer@user:1] Syncing", "remove doc:1#viewer@user:1", "commit a [] Removed", "remove finalizer from a"},
		},
		"a deleted owner without tuples is released": {
			owners: []Owner{owner("a", t1).with(deletingOwner)}, want: []string{"remove finalizer from a"},
		},
		"a deleted Store stays while others need it": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(func(o *Owner) { o.Deleting, o.HasDependents = true, true }).with(synced(1))},
		},
		"a deleted Store that was never held gets nothing new": {
			owners: []Owner{owner("a", t1).with(unclaimedOwner).with(func(o *Owner) { o.Deleting, o.HasDependents = true, true })},
			want:   []string{"commit a [] Invalid"},
		},
		"the Store of IAM is held whatever it declares": {
			owners: []Owner{owner("a").with(unclaimedOwner).with(func(o *Owner) { o.IsStore, o.Reserved = true, true })},
			want:   []string{"add finalizer to a", "commit a [] Synced"},
		},
		"another is not": {
			owners: []Owner{owner("a").with(unclaimedOwner).with(func(o *Owner) { o.IsStore = true })},
			want:   []string{"commit a [] Synced"},
		},
		"an object whose Store is gone takes its tuples along, too": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(deletingOwner).with(unrecordedTuple)},
			want: []string{
				"intend a S[doc:1#viewer@user:1] Syncing", "remove doc:1#viewer@user:1", "commit a [] Removed", "remove finalizer from a",
			},
		},
		"an object that left for a Store that is not there takes its tuples along": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(unrecordedTuple).with(func(o *Owner) { o.RecordedElsewhere = true })},
			want:   []string{"intend a S[doc:1#viewer@user:1] Syncing", "remove doc:1#viewer@user:1", "commit a [] Syncing"},
		},
		"a living object whose Store is gone keeps what it has": {
			owners: []Owner{owner("a", t2).recorded("S", t1).with(unrecordedTuple)}, want: []string{"commit a S[doc:1#viewer@user:1] StoreNotFound"},
		},
		"an object that belongs elsewhere leaves": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(ownerInOtherStore)},
			want:   []string{"intend a S[doc:1#viewer@user:1] Syncing", "remove doc:1#viewer@user:1", "commit a [] Syncing"},
		},
		"an object that has not left its old store yet has to wait": {
			owners: []Owner{owner("a", t1).recorded("R", t1)},
		},
		"an object whose Store has no store waits, once store-sync has ruled": {
			store: "none", owners: []Owner{owner("a", t1).with(ownerWithoutStore), owner("b", t1).with(ownerWithoutStore).with(ownerWithoutStoreSync)},
			want: []string{"commit a [] Pending"},
		},
		"an object whose Store lost sight of its store stays as it is": {
			owners: []Owner{owner("a", t2).recorded("S", t1).with(ownerWithoutStore).with(ownerWithoutStoreSync)},
		},
		"what was deleted past us goes if nobody else wants it": {
			owners: []Owner{owner("a", t1, t2).recorded("S", t1, t2).with(func(o *Owner) { o.Deleted = true }), owner("b", t1).recorded("S", t1).with(synced(1))},
			found:  []tuple.Tuple{t1, t2}, want: []string{"remove doc:2#viewer@user:1"},
		},
		"what was deleted past us long ago is not looked for again": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(func(o *Owner) { o.Deleted = true })}, found: []tuple.Tuple{},
		},
		"an object that cannot be changed keeps its tuples": {
			owners: []Owner{owner("a", t2).recorded("S", t1).with(func(o *Owner) { o.Unwritable = true }), owner("b").recorded("S", t1)},
			want:   []string{"intend b S[doc:1#viewer@user:1] Syncing", "write doc:1#viewer@user:1", "commit b [] Synced"},
		},
		"without a model nothing is added and nothing lost": {
			noModel: true, owners: []Owner{owner("a", t1, t2).recorded("S", t1)},
			want: []string{"commit a S[doc:1#viewer@user:1] Pending"},
		},
		"without a model what was left half-done stays so": {
			noModel: true, owners: []Owner{owner("a", t1).recorded("S", t1).with(syncing)},
			want: []string{"commit a S[doc:1#viewer@user:1] Syncing"},
		},
		"without a model tuples can still be removed": {
			noModel: true, owners: []Owner{owner("a", t1).recorded("S", t1, t2).with(synced(2))},
			want: []string{
				"intend a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing", "remove doc:2#viewer@user:1", "commit a S[doc:1#viewer@user:1] Synced",
			},
		},
		"an invalid tuple holds nothing up": {
			owners: []Owner{owner("a", t1, tx, t2)},
			want: []string{
				"intend a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Syncing", "write doc:1#viewer@user:1", "write doc:2#viewer@user:1",
				"commit a S[doc:1#viewer@user:1 doc:2#viewer@user:1] Invalid",
			},
		},
		"a tuple whose types are on their way waits in silence": {
			owners: []Owner{owner("a", tx).with(ownerWithoutStoreSync)},
		},
		"a tuple whose module was left out waits and says so": {
			owners: []Owner{owner("a", tx).with(func(o *Owner) { o.ModuleLive = false })}, want: []string{"commit a [] Pending"},
		},
		"a tuple that the model no longer allows goes": {
			owners: []Owner{owner("a", tx).recorded("S", tx)},
			want:   []string{"intend a S[ship:1#captain@user:1] Syncing", "remove ship:1#captain@user:1", "commit a [] Invalid"},
		},
		"nonsense in a record is not asked of OpenFGA": {
			owners: []Owner{owner("a").recorded("S", parseTuple("doc:1:2", "x y", "nobody"))},
			want:   []string{"intend a S[doc:1:2#x y@nobody] Syncing", "commit a [] Synced"},
		},
		"a finalizer that somebody took off comes back": {
			owners: []Owner{owner("a", t1).recorded("S", t1).with(synced(1)).with(unclaimedOwner)}, want: []string{"add finalizer to a"},
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
				in.Observed = map[tuple.ID]tuple.Tuple{}
				for _, found := range c.found {
					in.Observed[found.ID] = found
				}
			}
			p := DecideStore(in)
			if got := describePlan(p); !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
			if p.IsIdle() != (len(c.want) == 0) {
				t.Errorf("idle is %v", p.IsIdle())
			}
		})
	}
}

func TestStatusNamesStoreThatRefusesAll(t *testing.T) {
	o := owner("a", tx)
	in := Input{StoreID: "S", Owners: []Owner{o}, Model: testModel(t)}
	first := DecideStore(in).Actions[0].Commit
	if first == nil || first.StoreID != "S" || len(first.Record.Tuples) != 0 {
		t.Fatalf("recorded is %+v", first)
	}
	o.Condition, o.Ready, o.StatusStoreID = first.Condition, first.Ready, "R" // As another store said word for word.
	in.Owners = []Owner{o}
	if again := DecideStore(in).Actions[0].Commit; again == nil || again.StoreID != "S" {
		t.Errorf("then recorded is %+v", again)
	}
	o.StatusStoreID = "S"
	in.Owners = []Owner{o}
	if p := DecideStore(in); !p.IsIdle() {
		t.Errorf("in the end there is still to do: %v", describePlan(p))
	}
}

func TestReadyConditionRequiresAllTuples(t *testing.T) {
	obstacle := condition.New("Merged", false, "Rejected", "line 3: what is this?")
	for name, c := range map[string]struct {
		owner Owner
		want  string
	}{
		"all is live":                   {owner("a", t1), "true Ready Everything that this object declares is in force."},
		"nobody has decided":            {owner("a", t1).with(ownerWithoutStoreSync), "false ModelPending store-sync has not processed this generation yet."},
		"its module is not live":        {owner("a", t1).with(func(o *Owner) { o.ModuleLive, o.Obstacle = false, obstacle }), "false Rejected Merged: line 3: what is this?"},
		"the word is on another module": {owner("a", t1).with(ownerWithoutStoreSync).with(func(o *Owner) { o.Obstacle = obstacle }), "false ModelPending store-sync has not processed this generation yet."},
		"a tuple is wrong":              {owner("a", tx), "false Invalid TuplesSynced: 1 of 1 tuples cannot be in the store: ship:1#captain@user:1: type 'ship' not found. Correct them or the model."},
		"it is going":                   {owner("a", t1).with(func(o *Owner) { o.Deleting, o.HasDependents = true, true }), "false Deleting The object is being deleted."},
		"others refer to it": {owner("a", t1).with(func(o *Owner) {
			o.Deleting, o.HasDependents, o.Obstacle = true, true, condition.New("Deleting", true, "Blocked", "1 AuthorizationModels refer to this Store")
		}), "false Deleting 1 AuthorizationModels refer to this Store"},
	} {
		t.Run(name, func(t *testing.T) {
			action := DecideStore(Input{StoreID: "S", Owners: []Owner{c.owner}, Model: testModel(t)}).Actions[0]
			if action.Intent != nil && action.Intent.Ready.OK {
				t.Errorf("ready while tuples are written: %+v", action.Intent)
			}
			r := action.Commit.Ready
			if got := fmt.Sprintf("%t %s %s", r.OK, r.Reason, r.Message); got != c.want || r.Generation != c.owner.Generation {
				t.Errorf("got %s, want %s", got, c.want)
			}
			c.owner.Condition, c.owner.Ready, c.owner.HasFinalizer = action.Commit.Condition, action.Commit.Ready, true
			c.owner.Record, c.owner.StatusStoreID = action.Commit.Record, action.Commit.StoreID
			if p := DecideStore(Input{StoreID: "S", Owners: []Owner{c.owner}, Model: testModel(t)}); !p.IsIdle() {
				t.Errorf("then there is still to do: %v", describePlan(p))
			}
		})
	}
}

func TestOutageStatusUpdate(t *testing.T) {
	const down = "no answer since noon"
	if u := OutageStatusUpdate(new(owner("a", t1).recorded("S", t1)), down); u != nil {
		t.Errorf("an owner in step says %+v", u)
	}
	o := owner("a", t1, t2).recorded("S", t1)
	o.Generation = 2
	u := OutageStatusUpdate(&o, down)
	if u == nil || !u.Ready.Unknown || u.Ready.Reason != "BackendUnavailable" || u.Ready.Generation != 2 || u.Condition != o.Condition || len(u.Record.Tuples) != 1 {
		t.Fatalf("says %+v", u)
	}
	o.Ready = u.Ready
	if again := OutageStatusUpdate(&o, down+": still"); again != nil {
		t.Errorf("says so once more: %+v", again)
	}
	action := DecideStore(Input{StoreID: "S", Owners: []Owner{o}, Model: testModel(t)}).Actions[0]
	if action.Intent.Ready != o.Ready || !action.Commit.Ready.OK {
		t.Errorf("intends to say %+v, then %+v", action.Intent.Ready, action.Commit.Ready)
	}
	fresh := owner("a", t1).with(ownerWithoutStoreSync)
	fresh.Obstacle = condition.Condition{Type: "Merged", Status: "Unknown", Reason: "BackendUnavailable", Message: down}
	if c := DecideStore(Input{StoreID: "S", Owners: []Owner{fresh}}).Actions[0].Commit; c == nil || !c.Ready.Unknown || c.Ready.Message != down {
		t.Errorf("for store-sync says %+v", c)
	}
	waited := owner("a").with(ownerWithoutStoreSync)
	if u := OutageStatusUpdate(&waited, down); u == nil {
		t.Error("a new owner says nothing")
	} else {
		waited.Condition, waited.Ready = u.Condition, u.Ready
	}
	c := DecideStore(Input{StoreID: "S", Owners: []Owner{waited}, Model: testModel(t)}).Actions[0].Commit
	if c == nil || c.Ready.Unknown || c.Condition.Unknown {
		t.Errorf("after that says %+v before store-sync has decided", c)
	}
}

func TestReadyConditionWaitsForStoreSync(t *testing.T) {
	changed := owner("a", t1).recorded("S", t1).with(synced(1)).with(ownerWithoutStoreSync).with(func(o *Owner) { o.Generation = 2 })
	if p := DecideStore(Input{StoreID: "S", Owners: []Owner{changed}, Model: testModel(t)}); !p.IsIdle() {
		t.Errorf("planned %+v", p.Actions[0])
	}
	decided := changed.with(func(o *Owner) { o.ModuleJudged, o.ModuleLive = true, true })
	if p := DecideStore(Input{StoreID: "S", Owners: []Owner{decided}, Model: testModel(t)}); p.IsIdle() || !p.Actions[0].Commit.Ready.OK {
		t.Error("what was decided is not said")
	}
}
