package confirm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

const cluster = "local"

// server is an API server with bindings, a view that receives their changes, and a confirmer between the two.
type server struct {
	*Confirmer

	t        *testing.T
	bindings *informer.Lister[iamv1alpha1.PolicyBinding]
	version  int

	mu    sync.Mutex
	is    map[event.Key]event.Change
	reads []string
	lists int
	// listing is called for each object of a list.
	listing func(name string) error
}

func newServer(t *testing.T, bindings, room int) *server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	v := informer.New(informer.Config{Log: log})
	s := &server{t: t, is: map[event.Key]event.Change{}, listing: func(string) error { return nil }}
	s.bindings = informer.Register[iamv1alpha1.PolicyBinding](v, kinds.PolicyBindings(), nil)
	s.Confirmer = New(v, s, cluster, log, prometheus.NewRegistry())
	s.InBulk(s, room)
	for i := range bindings {
		s.tell(s.declare(named(i), "viewer"))
	}
	return s
}

func named(i int) string { return fmt.Sprintf("b-%04d", i) }

func keyOf(name string) event.Key {
	return event.Key{Cluster: cluster, GroupResource: kinds.PolicyBindings().GroupResource, Namespace: "team", Name: name}
}

// declare creates or changes a binding at the API server.
func (s *server) declare(name, role string) event.Change {
	b := &iamv1alpha1.PolicyBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	b.Spec.RoleRef.Name = role
	object, err := json.Marshal(b)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	kind := kinds.PolicyBindings()
	c := event.Change{
		Key: keyOf(name), Version: kind.Version, Kind: kind.Kind, UID: name, Epoch: "e", ResourceVersion: strconv.Itoa(s.version), Object: object,
	}
	s.is[c.Key] = c
	return c
}

// tell applies a change to the view.
func (s *server) tell(c event.Change) {
	if err := s.view.Apply(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
}

// confirm confirms bindings as the view has them, all at once.
func (s *server) confirm(names ...string) error {
	statements := make([]Statement, len(names))
	for i, name := range names {
		o, _ := s.bindings.Get(keyOf(name))
		statements[i] = NewStatement(o, func(b *iamv1alpha1.PolicyBinding) (declared, recorded any) { return b.Spec, nil })
	}
	return s.Confirm(s.t.Context(), statements...)
}

// each confirms the first bindings, one after the other.
func (s *server) each(bindings int) {
	s.t.Helper()
	for i := range bindings {
		if err := s.confirm(named(i)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *server) Newest(_ context.Context, _ kinds.Kind, c event.Change) (event.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, c.Key.Name)
	now, ok := s.is[c.Key]
	if !ok {
		c.Deleted = true
		return c, nil
	}
	return now, nil
}

// List returns the objects as the client does, without fields beside the object.
func (s *server) List(context.Context, kinds.Kind, string) iter.Seq2[event.Change, error] {
	s.mu.Lock()
	s.lists++
	all := slices.SortedFunc(maps.Values(s.is), func(a, b event.Change) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	s.mu.Unlock()
	return func(yield func(event.Change, error) bool) {
		for _, c := range all {
			err := s.listing(c.Key.Name)
			if !yield(event.Change{Key: event.Key{Cluster: cluster, GroupResource: c.Key.GroupResource}, Object: c.Object}, err) || err != nil {
				return
			}
		}
	}
}

func TestManyObjectsAreConfirmedByOneList(t *testing.T) {
	for name, test := range map[string]struct{ bindings, asked, lists, reads int }{
		"few":              {bindings: 1600, asked: 50, lists: 0, reads: 50},
		"few of very many": {bindings: 3200, asked: 200, lists: 0, reads: 200},
		"many":             {bindings: 1600, asked: 1600, lists: 1, reads: 100},
		"all of few":       {bindings: 60, asked: 60, lists: 1, reads: 50},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, test.bindings, 1)
			s.each(test.asked)
			s.each(test.asked) // All of them are confirmed already.
			if s.lists != test.lists || len(s.reads) != test.reads {
				t.Errorf("%d lists and %d reads, want %d and %d", s.lists, len(s.reads), test.lists, test.reads)
			}
		})
	}
}

func TestWhoAsksForManyAtOnceReadsNone(t *testing.T) {
	s := newServer(t, 100, 1)
	var names []string
	for i := range 100 {
		names = append(names, named(i), named(i)) // A role or a user is in many statements.
	}
	if err := s.confirm(names...); err != nil {
		t.Fatal(err)
	}
	if s.lists != 1 || len(s.reads) != 0 {
		t.Errorf("%d lists and %d reads, want one list", s.lists, len(s.reads))
	}
}

func TestWhoSaysThatManyWillBeAskedForHasThemListedAtOnce(t *testing.T) {
	for name, test := range map[string]struct{ expected, lists, reads int }{
		"many": {expected: 900, lists: 1, reads: 0},
		"few":  {expected: 20, lists: 0, reads: 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, 1000, 1)
			s.Expect(kinds.PolicyBindings().GroupResource, test.expected)
			s.each(20)
			if s.lists != test.lists || len(s.reads) != test.reads {
				t.Errorf("%d lists and %d reads, want %d and %d", s.lists, len(s.reads), test.lists, test.reads)
			}
		})
	}
}

// A finished list makes room for the next one.
func TestWhoHasWaitedMakesRoomForOthers(t *testing.T) {
	s := newServer(t, 100, 1)
	for range 2 {
		for i := range 100 {
			s.tell(s.declare(named(i), fmt.Sprint("role-", s.version)))
		}
		s.each(100)
	}
	if s.lists != 2 {
		t.Errorf("%d lists, want one each time", s.lists)
	}
}

func TestAListConfirmsNothingThatTheAPIServerDoesNotSay(t *testing.T) {
	s := newServer(t, 100, 1)
	s.declare(named(70), "owner")  // The view does not have this change yet.
	delete(s.is, keyOf(named(80))) // The view does not have this deletion yet.
	s.tell(s.is[keyOf(named(90))]) // The view has this state already.
	for i, want := range map[int]error{70: reconcile.ErrStale, 80: reconcile.ErrStale, 90: nil} {
		s.each(60)
		if err := s.confirm(named(i)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", named(i), err, want)
		}
	}
	if s.lists != 1 || slices.Contains(s.reads, named(90)) {
		t.Errorf("%d lists, and reads of %v", s.lists, s.reads)
	}
}

// A listed state may be older than a change in the view. A forged change that repeats the old state must not be
// confirmed by it.
func TestWhatChangesWhileItIsListedIsReadForItself(t *testing.T) {
	s := newServer(t, 100, 1)
	before := s.is[keyOf(named(99))]
	s.listing = func(name string) error {
		if name == named(0) {
			s.tell(s.declare(named(99), "nobody"))
			before.ResourceVersion = "900000"
			s.tell(before)
		}
		return nil
	}
	s.each(60)
	if err := s.confirm(named(99)); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("%v: the binding is confirmed as it was before", err)
	}
}

func TestWhoFindsNoRoomToWaitReadsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 3
		s, release := newServer(t, 100, room), make(chan struct{})
		s.listing = func(string) error { <-release; return nil }
		s.each(50)
		for i := 50; i < 60; i++ { // The first of these lists.
			go func() {
				if err := s.confirm(named(i)); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if n := len(s.reads); n != 50+10-room {
			t.Errorf("%d reads while a list is made, of 60", n)
		}
		close(release)
		synctest.Wait()
		if n := len(s.reads); s.lists != 1 || n != 50+10-room {
			t.Errorf("%d lists and %d reads in the end", s.lists, n)
		}
	})
}

func TestWhatCannotBeListedIsRead(t *testing.T) {
	s := newServer(t, 100, 1)
	s.listing = func(name string) error {
		if name == named(30) {
			return errors.New("forbidden")
		}
		return nil
	}
	s.each(100)
	if s.lists == 0 || len(s.reads) < 90 {
		t.Errorf("%d lists and %d reads", s.lists, len(s.reads))
	}
	if got := s.reads[len(s.reads)-1]; got != named(99) {
		t.Errorf("the last read is of %s", got)
	}
}

func TestWhatWasAskedForLongAgoIsNotMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 100, 1)
		s.each(40)
		<-time.After(2 * lately)
		for i := 40; i < 80; i++ {
			if err := s.confirm(named(i)); err != nil {
				t.Fatal(err)
			}
		}
		if s.lists != 0 {
			t.Error("listed for 40 of 100")
		}
	})
}
