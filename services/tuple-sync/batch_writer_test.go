package tuplesync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/leader"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// none returns no refused tuples.
func none() map[tuple.Tuple]error { return nil }

// gatedOpenFGA is an OpenFGA that makes each call when it is let.
type gatedOpenFGA struct {
	asked chan tuple.Write
	let   chan struct{}
	// answer is what becomes of a call.
	answer func(ctx context.Context, w tuple.Write) (map[tuple.Tuple]error, error)
}

func (g *gatedOpenFGA) Write(ctx context.Context, w tuple.Write) (map[tuple.Tuple]error, error) {
	g.asked <- w
	<-g.let
	return g.answer(ctx, w)
}

// concurrentWriters is a collector with those who write by it, and what became of each by its name.
type concurrentWriters struct {
	*batchWriter

	t       *testing.T
	openFGA *gatedOpenFGA
	wait    sync.WaitGroup
	mu      sync.Mutex
	came    map[string]string
}

func newConcurrentWriters(t *testing.T) *concurrentWriters {
	t.Helper()
	g := &gatedOpenFGA{asked: make(chan tuple.Write), let: make(chan struct{})}
	g.answer = func(context.Context, tuple.Write) (map[tuple.Tuple]error, error) { return none(), nil }
	return &concurrentWriters{batchWriter: &batchWriter{writer: g}, t: t, openFGA: g, came: map[string]string{}}
}

func named(name string) tuple.Tuple { return tuple.Tuple{ID: tuple.ID{Object: name}} }

// write has somebody write.
func (c *concurrentWriters) write(ctx context.Context, name string, w tuple.Write) {
	c.t.Helper()
	c.wait.Go(func() {
		refused, err := c.Write(ctx, w)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.came[name] = fmt.Sprint(len(refused), " ", err)
	})
}

// await returns once so many wait.
func (c *concurrentWriters) await(n int) {
	for waiting := 0; waiting < n; runtime.Gosched() {
		c.batchWriter.mu.Lock()
		waiting = len(c.waiting)
		c.batchWriter.mu.Unlock()
	}
}

// gather starts many writes during a call, and returns when all of them wait.
func (c *concurrentWriters) gather(writes map[string]tuple.Write) {
	c.t.Helper()
	c.write(c.t.Context(), "first", tuple.Write{StoreID: "S", Add: []tuple.Tuple{named("first")}})
	<-c.openFGA.asked
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		c.write(c.t.Context(), name, writes[name])
	}
	c.await(len(writes))
	c.openFGA.let <- struct{}{}
}

// calls lets all calls proceed, and returns how many tuples each added and removed.
func (c *concurrentWriters) calls(n int) (all []string) {
	c.t.Helper()
	for range n {
		w := <-c.openFGA.asked
		all = append(all, fmt.Sprintf("+%d-%d", len(w.Add), len(w.Remove)))
		c.openFGA.let <- struct{}{}
	}
	c.wait.Wait()
	return all
}

func adds(tuples ...string) tuple.Write {
	w := tuple.Write{StoreID: "S"}
	for _, t := range tuples {
		w.Add = append(w.Add, named(t))
	}
	return w
}

func TestBatchWriterQueuesWritesDuringCall(t *testing.T) {
	c, writes := newConcurrentWriters(t), map[string]tuple.Write{}
	for i := range 120 {
		writes[fmt.Sprint("more", i)] = adds(fmt.Sprint(i))
	}
	writes["gone"] = tuple.Write{StoreID: "S", Remove: []tuple.Tuple{named("g")}, Sure: true}
	writes["gone, too"] = tuple.Write{StoreID: "S", Remove: []tuple.Tuple{named("h")}, Sure: true}
	writes["of another turn"] = tuple.Write{StoreID: "S", Remove: []tuple.Tuple{named("i")}, Sure: true, Term: 2}
	c.gather(writes)
	got := c.calls(4)
	slices.Sort(got[:2])
	if want := []string{"+0-1", "+0-2", "+100-0", "+20-0"}; !slices.Equal(got, want) {
		t.Errorf("the calls are %v, want %v", got, want)
	}
	for name, is := range c.came {
		if is != "0 <nil>" {
			t.Errorf("%s is told %s", name, is)
		}
	}
	if len(c.came) != len(writes)+1 || c.busy || len(c.waiting) > 0 {
		t.Errorf("%d of %d are told", len(c.came), len(writes)+1)
	}
}

func TestBatchWriterRefusalDoesNotBlockOthers(t *testing.T) {
	c := newConcurrentWriters(t)
	written := 0
	c.openFGA.answer = func(_ context.Context, w tuple.Write) (map[tuple.Tuple]error, error) {
		if slices.Contains(w.Add, named("bad")) {
			return map[tuple.Tuple]error{named("bad"): fga.ErrInvalidTuple}, nil
		}
		written += len(w.Add)
		return none(), nil
	}
	c.gather(map[string]tuple.Write{"a": adds("1", "2"), "b": adds("3", "bad"), "c": adds("4")})
	if got := c.calls(2); !slices.Equal(got, []string{"+5-0", "+3-0"}) || written != 4 {
		t.Errorf("the calls are %v, %d tuples written", got, written)
	}
	if want := map[string]string{"first": "0 <nil>", "a": "0 <nil>", "b": "1 <nil>", "c": "0 <nil>"}; !maps.Equal(c.came, want) {
		t.Errorf("told is %v, want %v", c.came, want)
	}
}

func TestBatchWriterReturnsErrorPerWrite(t *testing.T) {
	c := newConcurrentWriters(t)
	c.openFGA.answer = func(_ context.Context, w tuple.Write) (map[tuple.Tuple]error, error) {
		if slices.Contains(w.Add, named("bad")) {
			return nil, errors.New("bad")
		}
		return none(), nil
	}
	c.gather(map[string]tuple.Write{"a": adds("1"), "b": adds("bad")})
	c.calls(3)
	if want := map[string]string{"first": "0 <nil>", "a": "0 <nil>", "b": "0 bad"}; !maps.Equal(c.came, want) {
		t.Errorf("told is %v, want %v", c.came, want)
	}
}

func TestBatchWriterReportsOutageToAll(t *testing.T) {
	c := newConcurrentWriters(t)
	c.openFGA.answer = func(_ context.Context, w tuple.Write) (map[tuple.Tuple]error, error) {
		if len(w.Add) > 1 {
			return nil, fault.Unavailable(errors.New("away"))
		}
		return none(), nil
	}
	c.gather(map[string]tuple.Write{"a": adds("1"), "b": adds("2")})
	if got := c.calls(1); !slices.Equal(got, []string{"+2-0"}) {
		t.Errorf("the calls are %v", got)
	}
	if want := map[string]string{"first": "0 <nil>", "a": "0 away", "b": "0 away"}; !maps.Equal(c.came, want) {
		t.Errorf("told is %v, want %v", c.came, want)
	}
}

// A write that was decided from a state that no longer counts must meet the fence with its own context.
func TestBatchWriterDoesNotShareCallAfterFailedCheck(t *testing.T) {
	c := newConcurrentWriters(t)
	outdated := errors.New("outdated")
	c.openFGA.answer = func(ctx context.Context, _ tuple.Write) (map[tuple.Tuple]error, error) {
		return nil, leader.CheckErr(ctx) // As the fence does.
	}
	c.write(t.Context(), "first", adds("first"))
	<-c.openFGA.asked
	c.write(t.Context(), "a", adds("1"))
	c.await(1)
	c.write(leader.WithCheck(t.Context(), func() error { return outdated }), "old", adds("2"))
	c.await(2)
	c.write(t.Context(), "b", adds("3"))
	c.await(3)
	c.openFGA.let <- struct{}{}
	ended := make(chan struct{})
	go func() { c.wait.Wait(); close(ended) }()
	var calls []int
	for running := true; running; {
		select {
		case w := <-c.openFGA.asked:
			calls = append(calls, len(w.Add))
			c.openFGA.let <- struct{}{}
		case <-ended:
			running = false
		}
	}
	if !slices.Equal(calls, []int{2, 1}) {
		t.Errorf("the calls add %v tuples", calls)
	}
	if want := map[string]string{"first": "0 <nil>", "a": "0 <nil>", "b": "0 <nil>", "old": "0 outdated"}; !maps.Equal(c.came, want) {
		t.Errorf("told is %v, want %v", c.came, want)
	}
}

// The context of the calling part may end while those of the other parts live.
func TestBatchWriterSurvivesCanceledCaller(t *testing.T) {
	c := newConcurrentWriters(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.openFGA.answer = func(ctx context.Context, _ tuple.Write) (map[tuple.Tuple]error, error) { return nil, ctx.Err() }
	c.write(t.Context(), "first", adds("first"))
	<-c.openFGA.asked
	c.write(ctx, "leads", adds("1"))
	c.await(1)
	c.write(t.Context(), "goes along", adds("2"))
	c.await(2)
	c.openFGA.let <- struct{}{}
	<-c.openFGA.asked
	cancel()
	c.openFGA.let <- struct{}{}
	c.wait.Wait()
	if c.came["leads"] != "0 context canceled" || c.came["goes along"] != fmt.Sprint("0 ", errUnanswered) {
		t.Errorf("told is %v", c.came)
	}
	if c.busy {
		t.Error("nobody can write any more")
	}
}

func TestBatchWriterPanicReleasesOthers(t *testing.T) {
	c := newConcurrentWriters(t)
	c.openFGA.answer = func(_ context.Context, w tuple.Write) (map[tuple.Tuple]error, error) {
		if len(w.Add) > 1 {
			panic("a fault of ours") //nolint:forbidigo // What becomes of others then?
		}
		return none(), nil
	}
	c.write(t.Context(), "first", adds("first"))
	<-c.openFGA.asked
	c.wait.Go(func() {
		defer func() { _ = recover() }()
		_, _ = c.Write(t.Context(), adds("1"))
	})
	c.await(1)
	c.write(t.Context(), "goes along", adds("2"))
	c.await(2)
	c.openFGA.let <- struct{}{}
	c.calls(1)
	if c.came["goes along"] != fmt.Sprint("0 ", errUnanswered) || c.busy {
		t.Errorf("told is %v", c.came)
	}
}

func TestBatchWriterSkipsExpiredCallers(t *testing.T) {
	c := newConcurrentWriters(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.write(t.Context(), "first", adds("first"))
	<-c.openFGA.asked
	c.write(ctx, "late", adds("1"))
	c.await(1)
	c.write(t.Context(), "in time", adds("2"))
	c.await(2)
	cancel()
	c.openFGA.let <- struct{}{}
	if got := c.calls(1); !slices.Equal(got, []string{"+1-0"}) {
		t.Errorf("the calls are %v", got)
	}
	if want := map[string]string{"first": "0 <nil>", "late": "0 context canceled", "in time": "0 <nil>"}; !maps.Equal(c.came, want) {
		t.Errorf("told is %v, want %v", c.came, want)
	}
}
