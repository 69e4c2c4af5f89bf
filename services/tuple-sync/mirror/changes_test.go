package mirror

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// server is an OpenFGA store: what it holds, and its list of changes, in their order.
type server struct {
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
	// reading, if there is one, holds up who reads everything until it is closed; begun is closed first.
	begun, reading chan struct{}
}

func (s *server) ReadTuples(context.Context, string) iter.Seq2[*openfgav1.Tuple, error] {
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

func (s *server) ReadObject(_ context.Context, _, object string) ([]*openfgav1.Tuple, error) {
	return slices.DeleteFunc(slices.Clone(s.tuples), func(t *openfgav1.Tuple) bool { return t.GetKey().GetObject() != object }), nil
}

func (s *server) stumbles(call string) error {
	if s.stumble == nil {
		return nil
	}
	return s.stumble(call)
}

// ReadChanges has the time of the last change that was read as its token: what is committed late is before that.
func (s *server) ReadChanges(_ context.Context, _, token string, since time.Time) ([]*openfgav1.TupleChange, string, error) {
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
	return &openfgav1.TupleKey{Object: iam.GroupType + ":" + object, Relation: "member", User: iam.User(user)}
}

// commit makes a change of some time be there.
func (s *server) commit(at time.Time, t *openfgav1.TupleKey, written bool) {
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

// doubted are the objects that the copy doubts once it has followed the store.
func (m *mirrored) doubtedAfter(t *testing.T) []string {
	t.Helper()
	if err := m.follow(t.Context(), "store"); err != nil {
		t.Fatal(err)
	}
	all := m.doubts()
	slices.Sort(all)
	for _, object := range all {
		if _, _, err := m.held(t.Context(), "store", object); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (m *mirrored) wantDoubts(t *testing.T, when string, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = iam.GroupType + ":" + want[i]
	}
	if got := m.doubtedAfter(t); !slices.Equal(got, want) {
		t.Errorf("%s %v are doubted, want %v", when, got, want)
	}
}

// wait makes the next look be one back.
func (m *mirrored) wait() { m.back -= looksBack }

// fails makes the next look one back, which must fail, and the one after that another.
func (m *mirrored) fails(t *testing.T) {
	t.Helper()
	m.wait()
	if err := m.follow(t.Context(), "store"); err == nil {
		t.Fatal("nothing has failed")
	}
	m.wait()
}

func TestWhatIsCommittedLateIsFound(t *testing.T) {
	s, now := &server{}, time.Now()
	m := newMirrored(s)
	s.commit(now, tupleOf("a", "alice"), true)
	m.wantDoubts(t, "at first")
	s.commit(now.Add(20*time.Second), tupleOf("b", "bob"), true)
	m.wantDoubts(t, "after a change", "b")
	s.commit(now, tupleOf("c", "carol"), true) // Two slow transactions end after one that came later.
	s.commit(now.Add(time.Second), tupleOf("d", "dave"), true)
	m.wantDoubts(t, "by what comes next in the list")
	m.wait()
	m.wantDoubts(t, "after a look back", "c", "d")
	m.wait()
	m.wantDoubts(t, "after all is known")
	if s.loads != 1 {
		t.Errorf("the store was read %d times", s.loads)
	}
}

func TestADatabaseThatWasRestoredIsReadAnew(t *testing.T) {
	s, now := &server{}, time.Now()
	m := newMirrored(s)
	s.commit(now, tupleOf("a", "alice"), true)
	s.commit(now.Add(time.Second), tupleOf("b", "bob"), true)
	m.wantDoubts(t, "at first")
	backup := server{tuples: slices.Clone(s.tuples), list: slices.Clone(s.list)}
	s.commit(now.Add(time.Hour), tupleOf("a", "alice"), false) // Revoked, by us.
	m.wrote("store", iam.GroupType+":a", nil, []iam.Tuple{{User: iam.User("alice"), Relation: "member", Object: iam.GroupType + ":a"}})
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

// Whoever restores a database has it stumble at first: what came back with it is looked for until it has been.
func TestARestoredDatabaseIsReadAnewThoughThatFailsAtFirst(t *testing.T) {
	s, now := &server{}, time.Now()
	m := newMirrored(s)
	s.commit(now, tupleOf("a", "alice"), true)
	m.wantDoubts(t, "at first")
	backup := server{tuples: slices.Clone(s.tuples), list: slices.Clone(s.list)}
	s.commit(now.Add(time.Hour), tupleOf("a", "alice"), false)
	m.wrote("store", iam.GroupType+":a", nil, []iam.Tuple{{User: iam.User("alice"), Relation: "member", Object: iam.GroupType + ":a"}})
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

// What was read of a list that could not be read to its end is not read again.
func TestAListThatFailsHalfwayIsNotForgotten(t *testing.T) {
	s, now := &server{page: 2}, time.Now()
	m := newMirrored(s)
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
	m.wantDoubts(t, "once it can be read", "b", "c", "d")
}
