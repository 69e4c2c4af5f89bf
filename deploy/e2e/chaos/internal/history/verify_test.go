package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const staleness = 15 * time.Second

func began() time.Time { return time.Unix(0, 0) }
func alice() Key       { return Key{Type: User, Name: "alice"} }
func sales() Key       { return Key{Type: Group, Namespace: "team", Name: "sales"} }
func editor() Key      { return Key{Type: Role, Namespace: "team", Name: "editor"} }
func base() Key        { return Key{Type: Role, Namespace: "team", Name: "base"} }
func bound() Key       { return Key{Type: PolicyBinding, Namespace: "team", Name: "bound"} }
func member() Key      { return Key{Type: GroupMembership, Namespace: "team", Name: "member"} }
func web() Key         { return Key{Type: "x/Project", Name: "web"} }
func org() Key         { return Key{Type: "x/Organization", Name: "org"} }
func mayGet() AccessQuestion {
	return AccessQuestion{User: "alice", Groups: []string{"oidc:staff"}, Permission: "x/projects.get", On: web()}
}

// declared returns objects by which alice may get the project: as a member of a group, by an inherited role, on the
// owner of the project.
func declared() map[Key]*ObjectContent {
	return map[Key]*ObjectContent{
		{Type: ProtectedResource, Name: "project"}:      {UID: "1", Registers: web().Type, Permissions: []string{mayGet().Permission}, Parents: []string{org().Type}},
		{Type: ProtectedResource, Name: "organization"}: {UID: "2", Registers: org().Type},
		alice():  {UID: "a"},
		sales():  {UID: "s"},
		member(): {UID: "3", Group: sales(), Member: Reference{alice(), "a"}},
		base():   {UID: "4", Permissions: []string{mayGet().Permission}},
		editor(): {UID: "5", Inherits: []Key{base()}},
		org():    {UID: "o"},
		web():    {UID: "w", Owners: []Reference{{org(), "o"}}},
		bound():  {UID: "6", Role: editor(), On: Reference{org(), "o"}, Subjects: []Reference{{sales(), "s"}}},
	}
}

// recorded is a timeline whose changes happen at exact times, with a mark every millisecond around them.
type recorded struct {
	Timeline
	revision uint64
}

func record(objects map[Key]*ObjectContent) *recorded {
	r := &recorded{}
	for k, o := range objects {
		r.at(0, k, o)
	}
	return r
}

func (r *recorded) at(after time.Duration, k Key, o *ObjectContent) {
	at := began().Add(after)
	r.AddMark(at, at, r.revision)
	r.revision++
	r.AddState(r.revision, k, o)
	r.AddMark(at, at, r.revision)
}

// judge judges an answer of yes to mayGet that took a millisecond.
func (r *recorded) judge(start time.Duration) Verdict {
	at := began().Add(start)
	return r.NewVerifier([]AccessQuestion{mayGet()}).VerifyAnswer(AllowAnswer{Start: at, End: at.Add(time.Millisecond)}, at.Add(-staleness))
}

func TestAccessNeedsEachObject(t *testing.T) {
	if got := record(declared()).judge(time.Second); got != Right {
		t.Fatalf("got verdict %d with all objects, want right", got)
	}
	for k := range declared() {
		objects := declared()
		if delete(objects, k); record(objects).judge(time.Second) != Wrong {
			t.Errorf("the answer counts as right without %v", k)
		}
		if slices.Contains([]string{Role, ProtectedResource, PolicyBinding, GroupMembership, web().Type}, k.Type) {
			continue // Nothing refers to the UID of these.
		}
		objects = declared()
		objects[k].UID = "another"
		if record(objects).judge(time.Second) != Wrong {
			t.Errorf("the answer counts as right with another object named %v", k)
		}
	}
}

func TestAccessFollowsFromEachKindOfGrant(t *testing.T) {
	for name, b := range map[string]ObjectContent{
		"to the user":           {Role: editor(), On: Reference{web(), "w"}, Subjects: []Reference{{alice(), "a"}}},
		"on all objects":        {Role: base(), On: Reference{Key: Key{Type: web().Type}}, Subjects: []Reference{{sales(), "s"}}},
		"on all owners":         {Role: base(), On: Reference{Key: Key{Type: org().Type}}, Subjects: []Reference{{sales(), "s"}}},
		"to the token's groups": {Role: base(), On: Reference{web(), "w"}, Subjects: []Reference{{Key: Key{Type: Group, Name: "oidc:staff"}}}},
	} {
		objects := declared()
		objects[bound()] = &b
		if got := record(objects).judge(time.Second); got != Right {
			t.Errorf("%s: got verdict %d, want right", name, got)
		}
	}
}

func TestAllowAtEdgeOfStalenessIsRight(t *testing.T) {
	r := record(declared())
	r.at(10*time.Second, bound(), nil)
	r.at(time.Hour, bound(), nil)
	if got := r.judge(10*time.Second + staleness); got != Right {
		t.Errorf("got verdict %d at the edge, want right", got)
	}
	if got := r.judge(10*time.Second + staleness + time.Millisecond); got != Wrong {
		t.Errorf("got verdict %d a millisecond later, want wrong", got)
	}
}

func TestAllowBeforeItsGrantIsWrong(t *testing.T) {
	objects := declared()
	delete(objects, bound())
	r := record(objects)
	r.at(10*time.Second, bound(), declared()[bound()])
	if got := r.judge(9 * time.Second); got != Wrong {
		t.Errorf("got verdict %d before the grant, want wrong", got)
	}
	if got := r.judge(10 * time.Second); got != Right {
		t.Errorf("got verdict %d at the grant, want right", got)
	}
}

func TestUnknownTimesCountForServer(t *testing.T) {
	r := record(declared())
	r.AddState(r.revision+1, bound(), nil) // No mark shows yet when that happened.
	if got := r.judge(time.Hour); got != Right {
		t.Errorf("got verdict %d, want right", got)
	}
}

func TestOldRoleBesideNewBindingIsMixed(t *testing.T) {
	objects := declared()
	delete(objects, bound())
	r := record(objects)
	r.at(10*time.Second, base(), &ObjectContent{UID: "4"})
	r.at(11*time.Second, bound(), declared()[bound()])
	r.at(time.Hour, bound(), nil)
	if got := r.judge(12 * time.Second); got != Mixed {
		t.Errorf("got verdict %d, want mixed", got)
	}
	if got := r.judge(11*time.Second + staleness); got != Wrong {
		t.Errorf("got verdict %d after the staleness of the old Role, want wrong", got)
	}
}

func TestTwoContentsOfOneObjectAreNotMixed(t *testing.T) {
	objects := declared()
	objects[editor()] = &ObjectContent{UID: "5"}
	objects[bound()] = &ObjectContent{Role: editor(), On: Reference{org(), "o"}, Subjects: []Reference{{alice(), "a"}}}
	r := record(objects)
	changed := &ObjectContent{UID: "5", Inherits: []Key{base()}}
	r.at(10*time.Second, bound(), &ObjectContent{Role: base(), On: Reference{org(), "o"}})
	r.at(11*time.Second, editor(), changed)
	r.at(time.Hour, editor(), nil)
	if got := r.judge(12 * time.Second); got != Mixed {
		t.Errorf("got verdict %d for the old binding with the new role, want mixed", got)
	}
	r = record(objects)
	r.at(10*time.Second, bound(), &ObjectContent{Role: base(), On: Reference{org(), "o"}})
	r.at(time.Hour, bound(), nil)
	if got := r.judge(12 * time.Second); got != Wrong {
		t.Errorf("got verdict %d for the role of one content with the subjects of another, want wrong", got)
	}
}

// draw returns a timeline of random changes, each of which removes an object, gives it another UID, or (mostly) restores it, and
// the times of the changes.
func draw(r *rand.Rand) (*recorded, []time.Duration) {
	history := record(declared())
	keys := slices.SortedFunc(maps.Keys(declared()), func(a, b Key) int { return slices.Compare([]byte(a.Type+a.Name), []byte(b.Type+b.Name)) })
	var times []time.Duration
	at := time.Duration(0)
	for range 40 {
		at += time.Duration(1+r.IntN(4000)) * time.Millisecond
		k := keys[r.IntN(len(keys))]
		object := declared()[k]
		switch r.IntN(6) {
		case 0:
			object = nil
		case 1:
			object.UID = fmt.Sprint("new-", r.IntN(2))
		}
		history.at(at, k, object)
		times = append(times, at)
	}
	history.AddMark(began().Add(time.Hour), began().Add(time.Hour), history.revision)
	return history, times
}

// delayed returns the contents at a time, each object delayed by its own duration.
func (r *recorded) delayed(at time.Duration, delay func() time.Duration) possibleContents {
	all, upTo := possibleContents{}, map[Key]time.Time{}
	for _, c := range r.changes {
		if _, known := upTo[c.key]; !known {
			upTo[c.key] = began().Add(at - delay())
		}
		if came, _ := r.latestBegin(c.revision); came.After(upTo[c.key]) {
			continue
		}
		if all[c.key] = []*ObjectContent{c.object}; c.object == nil {
			delete(all, c.key)
		}
	}
	return all
}

// A server that is late by at most the staleness is never wrong, and if all its objects are equally late, it is right.
// A server that errs for 50 ms is found, unless a state within the staleness, or a mix of such states, would excuse it.
func TestRandomHistories(t *testing.T) {
	verdicts := map[Verdict]int{}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 36))
		history, times := draw(r)
		late := func() time.Duration { return time.Duration(r.Int64N(int64(staleness))) }
		for range 150 {
			at := time.Duration(r.Int64N(int64(times[len(times)-1])))
			one := late()
			if history.delayed(at, func() time.Duration { return one }).canAllow(mayGet()) {
				if got := history.judge(at); got != Right {
					t.Fatalf("seed %d: got verdict %d for an answer at %s that was %s late, want right", seed, got, at, one)
				}
			}
			if history.delayed(at, late).canAllow(mayGet()) {
				verdicts[history.judge(at)]++
			}
		}
		if verdicts[Wrong] > 0 {
			t.Fatalf("seed %d: an answer is wrong whose objects were late by less than the staleness", seed)
		}
		plant(t, history, times[len(times)-1])
	}
	if verdicts[Right] < 100 || verdicts[Mixed] < 10 {
		t.Errorf("got verdicts %v, which is too few to show anything", verdicts)
	}
}

// plant removes the binding for good. It then requires that questions every 20 ms find a wrong answer that lasts 50 ms, at
// least twice.
func plant(t *testing.T, history *recorded, end time.Duration) {
	t.Helper()
	history.marks = history.marks[:len(history.marks)-1]
	history.at(end, bound(), nil)
	history.AddMark(began().Add(time.Hour), began().Add(time.Hour), history.revision)
	found := 0
	for at := time.Duration(0); at < 50*time.Millisecond; at += 20 * time.Millisecond {
		if history.judge(end+staleness+time.Second+at) == Wrong {
			found++
		}
	}
	if found < 2 {
		t.Errorf("got %d findings of an error of 50 ms, want at least 2", found)
	}
}

func TestForgottenStatesDoNotChangeVerdict(t *testing.T) {
	for seed := range uint64(20) {
		history, times := draw(rand.New(rand.NewPCG(seed, 7)))
		at := times[30]
		before := history.judge(at)
		count := len(history.changes)
		history.ForgetBefore(began().Add(at - staleness))
		if after := history.judge(at); after != before || len(history.changes) >= count {
			t.Errorf("seed %d: got verdict %d and %d of %d changes after the rest was forgotten, want verdict %d", seed, after, len(history.changes), count, before)
		}
	}
}

func TestVerifierDescribesWhenAccessWasLastAllowed(t *testing.T) {
	r := record(declared())
	r.at(10*time.Second, bound(), nil)
	r.at(time.Hour, alice(), nil)
	c := r.NewVerifier([]AccessQuestion{mayGet()})
	answer := AllowAnswer{Start: began().Add(40 * time.Second)}
	if got, want := c.DescribeLastAllowed(answer), "last allowed 30s before"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := c.AllowedNow(); len(got) > 0 {
		t.Errorf("got %v as allowed now, want nothing", got)
	}
}
