package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

func verdicts(evaluations []*Evaluation) []string {
	var all []string
	for _, e := range evaluations {
		for _, v := range e.Verdicts {
			all = append(all, fmt.Sprintf("%s %s%s %d %s", e.Owner.Key.Name, v.ID, v.Context, v.State, v.Reason))
		}
	}
	return all
}

func TestOlderOwnerWinsConditionConflict(t *testing.T) {
	here, there := withRelation(t1, "from_office", `{"floor":1}`), withRelation(t1, "from_office", `{"floor":2}`)
	older, store := owner("b", there), owner("z", t1)
	older.Created, store.IsStore = time.Unix(1, 0), true
	const lost = "the same tuple is declared with another condition by models.g/"
	for name, c := range map[string]struct {
		owners []Owner
		want   []string
	}{
		"the older object": {
			[]Owner{owner("a", here), older},
			[]string{`b doc:1#viewer@user:1{"floor":2} 0 `, `a doc:1#viewer@user:1{"floor":1} 2 ` + lost + "b: change one of them"},
		},
		"the Store itself": {
			[]Owner{older, store},
			[]string{`z doc:1#viewer@user:1 0 `, `b doc:1#viewer@user:1{"floor":2} 2 ` + lost + "z: change one of them"},
		},
		"the object of which it is live": {
			[]Owner{owner("z", here).recorded("S", here), older},
			[]string{`b doc:1#viewer@user:1{"floor":2} 2 ` + lost + "z: change one of them", `z doc:1#viewer@user:1{"floor":1} 0 `},
		},
		"the older one of which an earlier tuple is live": {
			[]Owner{owner("c", here), owner("b", there).recorded("S", t1)},
			[]string{`b doc:1#viewer@user:1{"floor":2} 0 `, `c doc:1#viewer@user:1{"floor":1} 2 ` + lost + "b: change one of them"},
		},
		"the Store, though another one's is live": {
			[]Owner{older.recorded("S", there), store},
			[]string{`z doc:1#viewer@user:1 0 `, `b doc:1#viewer@user:1{"floor":2} 2 ` + lost + "z: change one of them"},
		},
		"the other one, if the older one's tuple is invalid": {
			[]Owner{owner("b", here), owner("a", withRelation(t1, "nowhere", ""))},
			[]string{`a doc:1#viewer@user:1 2 undefined condition`, `b doc:1#viewer@user:1{"floor":1} 0 `},
		},
		"the line above": {
			[]Owner{owner("a", here, there)},
			[]string{`a doc:1#viewer@user:1{"floor":1} 0 `, `a doc:1#viewer@user:1{"floor":2} 2 ` + errTwice.Error()},
		},
		"nobody when both say the same": {
			[]Owner{owner("a", here), owner("b", here)},
			[]string{`a doc:1#viewer@user:1{"floor":1} 0 `, `b doc:1#viewer@user:1{"floor":1} 0 `},
		},
	} {
		if got := verdicts(EvaluateOwners("S", c.owners, testModel(t))); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n  %s", name, strings.Join(got, "\n  "))
		}
	}
}

func TestTuplesOfIAMTypesAreRefused(t *testing.T) {
	back := tuple.Tuple{ID: tuple.ID{Object: "iam.miloapis.com/RoleBinding:1", Relation: "u", User: "iam.miloapis.com/InternalUser:u/eve"}}
	o := owner("a", back, t1)
	o.Reserved = true
	p := DecideStore(Input{StoreID: "S", Owners: []Owner{o}, Model: testModel(t)})
	if c := p.Actions[0].NextCondition; !slices.Equal(p.Write, []tuple.Tuple{t1}) || c.Reason != Invalid || !strings.Contains(c.Message, "ReservedType") {
		t.Errorf("writes %v and says %+v", p.Write, c)
	}
}

// Who extends the IAM store takes it over for nobody: the tuple by which it is a cluster's is the Store's alone to declare.
func TestOwnerTupleIsDeclaredByIAMStoreOnly(t *testing.T) {
	mine := iam.StoreOwnerTuple("iam", "this")
	claim := tuple.Tuple{ID: tuple.ID{Object: mine.Object, Relation: mine.Relation, User: mine.User}}
	people := tuple.Tuple{ID: tuple.ID{Object: mine.Object, Relation: mine.Relation, User: "user:1"}}
	conditional := claim
	conditional.Condition = "c"
	for name, test := range map[string]struct {
		declares tuple.Tuple
		edit     func(*Owner)
		refused  bool
	}{
		"an AuthorizationModel":                      {claim, func(*Owner) {}, true},
		"an AuthorizationModel, under a condition":   {conditional, func(*Owner) {}, true},
		"an AuthorizationModel that has recorded it": {claim, func(o *Owner) { o.Record = TupleRecord{"S", []tuple.Tuple{claim}} }, true},
		"the Store":                                  {claim, func(o *Owner) { o.IsStore = true }, false},
		"the Store, under another name":              {claim, func(o *Owner) { o.IsStore, o.Store.Name = true, "other" }, true},
		"an AuthorizationModel, under another name":  {claim, func(o *Owner) { o.Store.Name = "other" }, true},
		"an AuthorizationModel of another Store":     {claim, func(o *Owner) { o.Reserved = false }, false},
		"an AuthorizationModel that is about people": {people, func(*Owner) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := owner("a", test.declares)
			o.Reserved, o.Store.Name = true, "iam"
			test.edit(&o)
			found := EvaluateOwners("S", []Owner{o}, nil)[0]
			if refused := found.Verdicts[0].Reason == errOwner.Error(); refused != test.refused || refused && len(found.desired) > 0 {
				t.Errorf("it is %+v, want refused %v", found.Verdicts[0], test.refused)
			}
		})
	}
}

func TestOtherStoresDoNotReserveTypes(t *testing.T) {
	repo := tuple.Tuple{ID: tuple.ID{Object: "git.example/repo:1", Relation: "owner", User: "user:eve"}}
	for _, v := range EvaluateOwners("S", []Owner{owner("a", repo)}, testModel(t))[0].Verdicts {
		if strings.Contains(v.Reason, "ReservedType") {
			t.Errorf("%s is %s", v.ID, v.Reason)
		}
	}
	if found := FindUndeclaredTuples(Input{StoreID: "S", Model: testModel(t)}, []tuple.Tuple{repo}); len(found) != 1 {
		t.Errorf("undeclared are %v", found)
	}
	if found := FindUndeclaredTuples(Input{StoreID: "S", Model: testModel(t), Reserved: true}, []tuple.Tuple{repo}); len(found) > 0 {
		t.Errorf("of IAM undeclared are %v", found)
	}
}

func TestOutdatedOwnerRemovesButDoesNotAddTuples(t *testing.T) {
	o := owner("a", t1, t2).recorded("S", t1, t3)
	o.Generation, o.ModuleLive, o.Outdated = 2, false, true
	p := DecideStore(Input{StoreID: "S", Owners: []Owner{o}, Model: testModel(t)})
	if len(p.Write) > 0 || !slices.Equal(p.Remove, []tuple.Tuple{t3}) {
		t.Errorf("writes %v, removes %v", p.Write, p.Remove)
	}
	if c := p.Actions[0].NextCondition; c.Reason != Pending || !strings.Contains(c.Message, "1 of 2 tuples wait") || !strings.Contains(c.Message, "wait for it") {
		t.Errorf("condition is %+v", c)
	}
	moved := owner("a", t1, t2).recorded("lost", t1, t2)
	moved.Generation, moved.ModuleLive, moved.Outdated = 2, false, true
	left := DecideStore(Input{StoreID: "lost", Owners: []Owner{moved}, Model: testModel(t)}).Actions[0]
	moved.Record, moved.Condition, moved.StatusStoreID = left.Commit.Record, left.Commit.Condition, left.Commit.StoreID
	if p := DecideStore(Input{StoreID: "S", Owners: []Owner{moved}}); !p.IsIdle() {
		t.Errorf("before there is a model it does %+v", p)
	}
	if p := DecideStore(Input{StoreID: "S", Owners: []Owner{moved}, Model: testModel(t)}); !slices.Equal(p.Write, []tuple.Tuple{t1, t2}) {
		t.Errorf("writes %v after the store was lost", p.Write)
	}
	o.Outdated, o.ModuleLive = false, true
	if p = DecideStore(Input{StoreID: "S", Owners: []Owner{o}, Model: testModel(t)}); !slices.Equal(p.Write, []tuple.Tuple{t2}) {
		t.Errorf("writes %v when the text is live", p.Write)
	}
}

func TestTuplesBeyondRecordLimitAreRefused(t *testing.T) {
	var declared []tuple.Tuple
	for i := range 800 {
		declared = append(declared, parseTuple(fmt.Sprintf("doc:%0200d", i), "viewer", fmt.Sprintf("user:%0490d", i)))
	}
	o := owner("a", declared...)
	o.Size = 500_000
	j := EvaluateOwners("S", []Owner{o}, testModel(t))[0]
	size := o.Size
	for _, list := range [][]tuple.Tuple{o.Declared, j.desired} {
		for _, t := range list {
			size += t.JSONSize()
		}
	}
	if len(j.desired) == 0 || len(j.desired) == len(declared) || size > maxObject || size < maxObject-1000 {
		t.Fatalf("%d of %d tuples are wanted, %d bytes in all", len(j.desired), len(declared), size)
	}
	last := j.Verdicts[len(j.Verdicts)-1]
	if last.State != Refused || !strings.Contains(last.Reason, "AuthorizationModel") {
		t.Errorf("the last verdict is %d %s", last.State, last.Reason)
	}
	o.Record = TupleRecord{"S", j.desired}
	if again := EvaluateOwners("S", []Owner{o}, testModel(t))[0]; !slices.Equal(again.desired, j.desired) {
		t.Errorf("then %d are wanted", len(again.desired))
	}
}

func TestTuplesOfUnknownTypesArePending(t *testing.T) {
	for name, c := range map[string]struct {
		owner Owner
		store string
		want  error
	}{
		"no store": {owner("a", t1).with(ownerWithoutStore), "", errNoStore},
		"moving":   {owner("a", t1).recorded("R", t1), "S", errElsewhere},
	} {
		got := EvaluateOwners(c.store, []Owner{c.owner}, nil)[0]
		if len(got.Verdicts) != 1 || got.Verdicts[0].State != Waiting || got.Verdicts[0].Reason != c.want.Error() {
			t.Errorf("%s: got %+v", name, got.Verdicts)
		}
	}
}

func TestConditionMessageNamesErrors(t *testing.T) {
	var declared []tuple.Tuple
	for i := range 50 {
		declared = append(declared, parseTuple(fmt.Sprintf("ship:%02d", i), "captain", "user:1"))
	}
	p := DecideStore(Input{StoreID: "S", Owners: []Owner{owner("a", append(declared, t1)...)}, Model: testModel(t)})
	message := p.Actions[0].NextCondition.Message
	for _, part := range []string{"50 of 51 tuples", "ship:00#captain@user:1: type 'ship' not found;", "ship:09#", " and 40 more.", "Correct them or the model."} {
		if !strings.Contains(message, part) {
			t.Errorf("%q is not in %q", part, message)
		}
	}
	if strings.Contains(message, "ship:10#") || len(message) > 1000 {
		t.Errorf("the message is %d bytes long: %q", len(message), message)
	}
	if again := DecideStore(Input{StoreID: "S", Owners: []Owner{owner("a", append(declared, t1)...)}, Model: testModel(t)}); again.Actions[0].NextCondition != p.Actions[0].NextCondition {
		t.Error("the message is another each time")
	}
}

func TestConditionMessageIsBounded(t *testing.T) {
	var declared []tuple.Tuple
	for i := range 20 {
		declared = append(declared, parseTuple(fmt.Sprint(i)+strings.Repeat("é", 10_000), "viewer", "user:1"))
	}
	p := DecideStore(Input{StoreID: "S", Owners: []Owner{owner("a", declared...)}, Model: testModel(t)})
	if n := len(p.Actions[0].NextCondition.Message); n > 16_000 {
		t.Errorf("the message is %d bytes long", n)
	}
}

func TestUnknownClusterMessageExplainsNames(t *testing.T) {
	o := owner("a", t1).with(unrecordedTuple)
	o.Key.Cluster, o.Store = "here", event.Key{Cluster: "there", Name: "demo"}
	if c := DecideStore(Input{Owners: []Owner{o}}).Actions[0].Commit; c == nil || !strings.Contains(c.Condition.Message, `this one is "here"`) {
		t.Errorf("condition is %+v", c)
	}
}
