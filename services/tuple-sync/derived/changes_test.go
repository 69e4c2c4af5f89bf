package derived

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// simulatedOpenFGA is an OpenFGA store: what it holds, and its list of changes, in their order.
type simulatedOpenFGA struct {
	tuples []*openfgav1.Tuple
	list   []*openfgav1.TupleChange
	loads  int
	// gone says that there is no such store, writes are all calls, and refuse tells what is not taken.
	gone   bool
	writes []tuple.Write
	refuse func(tuple.Tuple) bool
	fail   func() error
	// page is how many changes are told at a time, if not all; stumble fails one call that reads, if there is one.
	page    int
	stumble func(call string) error
	// reading, if set, blocks reads of the whole store until it is closed; begun is closed first.
	begun, reading chan struct{}
	// asked is called while an object is read, if it is there.
	asked func()
}

func (s *simulatedOpenFGA) ReadTuples(context.Context, string) iter.Seq2[*openfgav1.Tuple, error] {
	s.loads++
	if s.reading != nil {
		close(s.begun)
		<-s.reading
	}
	return func(yield func(*openfgav1.Tuple, error) bool) {
		if err := s.stumbles("read"); err != nil {
			yield(nil, err)
			return
		}
		for _, t := range s.tuples {
			if !yield(t, nil) {
				return
			}
		}
	}
}

func (s *simulatedOpenFGA) ReadObjectTuples(_ context.Context, _, object string) ([]*openfgav1.Tuple, error) {
	if s.asked != nil {
		defer s.asked()
	}
	return slices.DeleteFunc(slices.Clone(s.tuples), func(t *openfgav1.Tuple) bool { return t.GetKey().GetObject() != object }), nil
}

func (s *simulatedOpenFGA) ReadStoreOwnerTuples(context.Context, string) (owners []iam.Tuple, err error) {
	for _, t := range s.tuples {
		k := t.GetKey()
		if named := (iam.Tuple{User: k.GetUser(), Relation: k.GetRelation(), Object: k.GetObject()}); k.GetCondition() == nil && iam.IsStoreOwnerTuple(named) {
			owners = append(owners, named)
		}
	}
	return owners, nil
}

func (s *simulatedOpenFGA) stumbles(call string) error {
	if s.stumble == nil {
		return nil
	}
	return s.stumble(call)
}

// ReadChanges has the time of the last change that was read as its token: what is committed late is before that.
func (s *simulatedOpenFGA) ReadChanges(_ context.Context, _, token string, since time.Time) ([]*openfgav1.TupleChange, string, error) {
	from := since
	if token != "" {
		var err error
		if from, err = time.Parse(time.RFC3339Nano, token); err != nil {
			return nil, "", err
		}
		from = from.Add(1)
	}
	page := slices.DeleteFunc(slices.Clone(s.list), func(c *openfgav1.TupleChange) bool { return c.GetTimestamp().AsTime().Before(from) })
	slices.SortFunc(page, func(a, b *openfgav1.TupleChange) int {
		return a.GetTimestamp().AsTime().Compare(b.GetTimestamp().AsTime())
	})
	if s.page > 0 && len(page) > s.page {
		page = page[:s.page]
	}
	if err := s.stumbles("changes after " + token); err != nil {
		return nil, "", err
	}
	if len(page) > 0 {
		token = page[len(page)-1].GetTimestamp().AsTime().Format(time.RFC3339Nano)
	}
	return page, token, nil
}

// tupleOf is a tuple that says which user it is of.
func tupleOf(object, user string) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{Object: iam.GroupType + ":" + object, Relation: "member", User: iam.UserSubject(user)}
}

// commit makes a change of some time be there.
func (s *simulatedOpenFGA) commit(at time.Time, t *openfgav1.TupleKey, written bool) {
	operation := openfgav1.TupleOperation_TUPLE_OPERATION_WRITE
	if !written {
		operation = openfgav1.TupleOperation_TUPLE_OPERATION_DELETE
	}
	s.list = append(s.list, &openfgav1.TupleChange{TupleKey: t, Operation: operation, Timestamp: timestamppb.New(at)})
	s.tuples = slices.DeleteFunc(s.tuples, func(o *openfgav1.Tuple) bool { return o.GetKey().String() == t.String() })
	if written {
		s.tuples = append(s.tuples, &openfgav1.Tuple{Key: t, Timestamp: timestamppb.New(at)})
	}
}

// doubtedAfter returns the doubted objects after the copy has followed the store.
func (m *tupleReplica) doubtedAfter(t *testing.T) []string {
	t.Helper()
	if err := m.looks(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := m.suspectObjects()
	slices.Sort(all)
	for _, object := range all {
		if _, _, err := m.readObjectTuples(t.Context(), "store", object); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (m *tupleReplica) wantDoubts(t *testing.T, when string, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = iam.GroupType + ":" + want[i]
	}
	if got := m.doubtedAfter(t); !slices.Equal(got, want) {
		t.Errorf("%s %v are doubted, want %v", when, got, want)
	}
}

// looks follows the store, and looks back if it is time to.
func (m *tupleReplica) looks(ctx context.Context) error {
	if err := m.catchUp(ctx, "store"); err != nil || !m.isRereadDue() {
		return err
	}
	return m.rereadRecentChanges(ctx, "store")
}

// wait makes the next rereadRecentChanges due.
func (m *tupleReplica) wait() { m.back -= looksBack }

// fails makes the next look one back, which must fail: so is the one after that.
func (m *tupleReplica) fails(t *testing.T) {
	t.Helper()
	m.wait()
	if err := m.looks(t.Context()); err == nil {
		t.Fatal("nothing has failed")
	}
	if !m.isRereadDue() {
		t.Error("what failed is done")
	}
}

func TestRereadRecentChangesFindsLateCommit(t *testing.T) {
	s, now := &simulatedOpenFGA{}, time.Now()
	m := newReplica(s)
	s.commit(now, tupleOf("a", "alice"), true)
	m.wantDoubts(t, "at first")
	s.commit(now.Add(20*time.Second), tupleOf("b", "bob"), true)
	m.wantDoubts(t, "after a change", "b")
	s.commit(now, tupleOf("c", "carol"), true) // Two slow transactions end after one that came later.
	s.commit(now.Add(-late/2), tupleOf("d", "dave"), true)
	m.wantDoubts(t, "by what comes next in the list")
	m.wait()
	m.wantDoubts(t, "after a look back", "c", "d")
	m.wait()
	m.wantDoubts(t, "after all is known")
	if s.loads != 1 {
		t.Errorf("the store was read %d times", s.loads)
	}
}

func TestLateForeignWriteIsRemoved(t *testing.T) {
	b := newReconcilerEnv(t)
	b.openFGA.commit(time.Now(), tupleOf("a", "alice"), true)
	b.ask(Key{sort: tail})
	b.work()
	b.openFGA.commit(time.Now().Add(-late/2), tupleOf("b", "bob"), true)
	b.copy.wait()
	b.ask(Key{sort: tail})
	b.work()
	if held := b.openFGA.holds(); len(held) > 0 {
		t.Errorf("nobody declares %v", held)
	}
}

func TestRestoredDatabaseIsReloaded(t *testing.T) {
	s, now := &simulatedOpenFGA{}, time.Now()
	m := newReplica(s)
	s.commit(now, tupleOf("a", "alice"), true)
	s.commit(now.Add(time.Second), tupleOf("b", "bob"), true)
	m.wantDoubts(t, "at first")
	backup := simulatedOpenFGA{tuples: slices.Clone(s.tuples), list: slices.Clone(s.list)}
	s.commit(now.Add(time.Hour), tupleOf("a", "alice"), false) // Revoked, by us.
	m.recordWrite("store", iam.GroupType+":a", nil, []iam.Tuple{{User: iam.UserSubject("alice"), Relation: "member", Object: iam.GroupType + ":a"}})
	m.wantDoubts(t, "after a revocation")
	s.tuples, s.list = backup.tuples, backup.list
	m.wait()
	m.wantDoubts(t, "after the restoration", "a")
	if s.loads != 2 {
		t.Errorf("the store was read %d times", s.loads)
	}
	s.commit(now.Add(2*time.Hour), tupleOf("b", "bob"), false)
	m.wantDoubts(t, "in the new history", "b")
	m.wait()
	m.wantDoubts(t, "when nothing has happened")
	if s.loads != 2 {
		t.Errorf("the store was read %d times", s.loads)
	}
}

// Writes after a restore of the database must not hide the restore.
func TestRestoredDatabaseWithLaterWritesIsReloaded(t *testing.T) {
	for name, backed := range map[string]int{"long before": 1, "after it was looked back": 2} {
		t.Run(name, func(t *testing.T) {
			s, now := &simulatedOpenFGA{}, time.Now()
			m := newReplica(s)
			s.commit(now, tupleOf("a", "alice"), true)
			m.wantDoubts(t, "at first")
			s.commit(now.Add(time.Minute), tupleOf("b", "bob"), true)
			m.wait()
			m.wantDoubts(t, "when it was looked back", "b")
			backup := simulatedOpenFGA{tuples: slices.Clone(s.tuples[:backed]), list: slices.Clone(s.list[:backed])}
			s.commit(now.Add(time.Hour), tupleOf("a", "alice"), false)
			m.wantDoubts(t, "after a revocation", "a")
			s.tuples, s.list = backup.tuples, backup.list
			for i := range 3 { // In between it is only followed.
				s.commit(now.Add(time.Hour+time.Duration(i)*time.Second), tupleOf("c", "carol"), i%2 == 0)
				if err := m.catchUp(t.Context(), "store"); err != nil {
					t.Fatal(err)
				}
			}
			m.wait()
			if got := m.doubtedAfter(t); !slices.Contains(got, iam.GroupType+":a") {
				t.Errorf("alice is back, doubted is %v", got)
			}
			s.commit(now.Add(-time.Hour), tupleOf("d", "dave"), true) // The clock of what was restored is behind.
			s.list[len(s.list)-1].Timestamp = timestamppb.New(now.Add(time.Hour + 10*time.Second))
			m.wantDoubts(t, "in the new history", "d")
			loads := s.loads
			m.wait()
			m.wantDoubts(t, "when nothing has happened")
			if s.loads != loads {
				t.Error("it is read anew for ever")
			}
		})
	}
}

// A running rereadRecentChanges blocks no pass.
func TestRereadRecentChangesDoesNotBlockReconcile(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.follow()
	begun, read, done := make(chan struct{}), make(chan struct{}), make(chan error)
	b.openFGA.stumble = func(string) error { close(begun); <-read; return nil }
	go func() { done <- b.copy.rereadRecentChanges(t.Context(), "store") }()
	<-begun
	b.openFGA.stumble = nil
	b.copy.mu.Lock()
	b.copy.read = 0 // Nobody has read for long.
	b.copy.mu.Unlock()
	b.drop(kinds.PolicyBindings(), "bob")
	b.work()
	b.inStep("while somebody looks back,")
	close(read)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A restored database may fail at first; rereadRecentChanges stays due until it succeeds.
func TestRestoredDatabaseReloadIsRetried(t *testing.T) {
	s, now := &simulatedOpenFGA{}, time.Now()
	m := newReplica(s)
	s.commit(now, tupleOf("a", "alice"), true)
	m.wantDoubts(t, "at first")
	backup := simulatedOpenFGA{tuples: slices.Clone(s.tuples), list: slices.Clone(s.list)}
	s.commit(now.Add(time.Hour), tupleOf("a", "alice"), false)
	m.recordWrite("store", iam.GroupType+":a", nil, []iam.Tuple{{User: iam.UserSubject("alice"), Relation: "member", Object: iam.GroupType + ":a"}})
	m.wantDoubts(t, "after a revocation")
	s.tuples, s.list = backup.tuples, backup.list
	s.commit(now.Add(2*time.Hour), tupleOf("b", "bob"), true) // The new history goes on.
	failures := 1
	s.stumble = func(call string) error {
		if call == "read" && failures > 0 {
			failures--
			return errTrouble
		}
		return nil
	}
	m.fails(t)
	m.wantDoubts(t, "once it can be read", "a", "b")
}

// The part of the list that was read before an error is kept.
func TestPartialChangeListIsKept(t *testing.T) {
	s, now := &simulatedOpenFGA{page: 2}, time.Now()
	m := newReplica(s)
	s.commit(now, tupleOf("a", "alice"), true)
	m.wantDoubts(t, "at first")
	s.commit(now.Add(time.Second), tupleOf("b", "bob"), true)
	s.commit(now.Add(10*time.Minute), tupleOf("c", "carol"), true)
	s.commit(now.Add(11*time.Minute), tupleOf("d", "dave"), true)
	calls := 0
	s.stumble = func(string) error {
		if calls++; calls == 3 {
			return errTrouble
		}
		return nil
	}
	m.fails(t)
	if got := m.suspectObjects(); len(got) != 3 {
		t.Errorf("as far as it was read, %v are doubted", got)
	}
	m.wantDoubts(t, "once it can be read", "b", "c", "d")
}

// While a doubted object is being read, the copy still reports the doubt. A doubt raised meanwhile stays.
func TestSuspectLastsUntilObjectIsRead(t *testing.T) {
	object := iam.GroupType + ":a"
	s := &simulatedOpenFGA{tuples: []*openfgav1.Tuple{{Key: tupleOf("a", "alice")}}}
	m := newReplica(s)
	if err := m.catchUp(t.Context(), "store"); err != nil {
		t.Fatal(err)
	}
	joined := &iamv1alpha1.GroupMembership{Status: iamv1alpha1.GroupMembershipStatus{User: &iamv1alpha1.Member{Name: "alice", UID: "1"}}}
	joined.Spec.UserRef.Name = "alice"
	n := &iamSnapshot{of: inputIdentity{storeID: "store"}, objects: &iam.DeclaredObjects{
		GroupOf:       func(string) *iamv1alpha1.Group { return &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: "a"}} },
		MembershipsOf: func(string, string) []*iamv1alpha1.GroupMembership { return []*iamv1alpha1.GroupMembership{joined} },
		User: func(name string) *iamv1alpha1.User {
			return &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}
		},
	}}
	if !m.hasExactlyDesired(n, object) {
		t.Fatal("it does not hold what was read")
	}
	s.tuples = nil // Somebody took it away.
	m.markSuspect(object)
	s.asked = func() {
		if m.hasExactlyDesired(n, object) {
			t.Error("it holds what is wanted, says a copy that is being read anew")
		}
		m.markSuspect(object)
	}
	if _, _, err := m.readObjectTuples(t.Context(), "store", object); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(m.suspectObjects(), object) {
		t.Error("a doubt that came while the object was read is forgotten")
	}
	s.asked = nil
	if has, _, err := m.readObjectTuples(t.Context(), "store", object); err != nil || len(has) > 0 || len(m.suspectObjects()) > 0 {
		t.Errorf("it has %v, and in doubt are %v: %v", has, m.suspectObjects(), err)
	}
}
