//go:build integration

package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// staleness is the MaxStaleness of the replicas in these tests.
const staleness = 5 * time.Second

// replica is a webhook in a process of its own.
type replica struct {
	testenv.Process

	// reviews is the address of the authorizer, url that of the API.
	reviews, url string
	// path carries the connections to NATS.
	path   *path
	client accessv1connect.AccessServiceClient
}

// replicated is a bed of two replicas. alice and bob each have a role on the project web.
type replicated struct {
	*bed

	reflector *testenv.Reflector
	// first stays undisturbed, second suffers the faults.
	first, second *replica
	web           string
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	r := &replicated{bed: &bed{Env: testenv.NewEnv(t)}}
	r.reflector = r.StartReflector()
	r.protect()
	r.web = r.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	for _, user := range []string{"alice", "bob"} {
		uid := r.create(kinds.IAMUsers(), user, map[string]any{"email": user + "@example.com"})
		r.bind(user, "Project", "web", r.web, subjectFromMessage("User", user, uid))
	}
	r.first, r.second = r.replica(), r.replica()
	for _, one := range []*replica{r.first, r.second} {
		one.says(t, "alice", true)
		one.says(t, "bob", true)
	}
	return r
}

func (r *replicated) replica() *replica {
	r.T.Helper()
	bus, err := url.Parse(r.NATS.URLOf(topology.Webhook))
	if err != nil {
		r.T.Fatal(err)
	}
	listen := freeAddress(r.T)
	one := &replica{reviews: freeAddress(r.T), url: "http://" + listen, path: newPath(r.T, bus.Host)}
	bus.Host = one.path.Addr().String()
	one.Process = testenv.SpawnService(r.T, topology.Webhook, r.NATS, r.Kube, "--nats-url", bus.String(), "--listen", listen, "--authorizer-listen", one.reviews,
		"--max-staleness", staleness.String(), "--log-level", "warn")
	one.client = accessv1connect.NewAccessServiceClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, one.url)
	return one
}

// ask returns the answer of a replica about a user, or an error if there is none.
func (r *replica) ask(ctx context.Context, user string) (allowed bool, err error) {
	err = ask(ctx, http.DefaultClient, "http://"+r.reviews+"/core/v1alpha/webhook", reviewOf(user), `"allowed":true`)
	if err != nil && strings.Contains(err.Error(), "missing permission") {
		return false, nil
	}
	return err == nil, err
}

// says waits until the answer of a replica about a user is as wanted.
func (r *replica) says(t *testing.T, user string, want bool) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		if is, err := r.ask(t.Context(), user); err != nil || is != want {
			return fmt.Errorf("%s: got allowed %v, want %v, %w", user, is, want, err)
		}
		return nil
	})
}

// silent waits until a replica gives no answer.
func (r *replica) silent(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		if is, err := r.ask(t.Context(), "alice"); err == nil {
			return fmt.Errorf("alice: got allowed %v", is)
		}
		return nil
	})
}

// never expects that no answer of a replica allows a user, until the returned function is called. That function also
// expects that the replica has refused the user.
func (r *replica) never(t *testing.T, user string) (until func()) {
	t.Helper()
	a := &asker{address: r.reviews, user: user, always: "missing permission"}
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() { a.run(ctx, t) })
	t.Cleanup(func() { stop(); asking.Wait() })
	return func() {
		t.Helper()
		a.more(t)
		stop()
		asking.Wait()
	}
}

// metric returns the value of a gauge of the informer.
func (r *replica) metric(t *testing.T, name string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(body), "\n"+name+`{service="webhook"} `)
	line, _, _ := strings.Cut(after, "\n")
	value, err := strconv.ParseFloat(line, 64)
	if !found || err != nil {
		t.Fatalf("%s: got %q, %v", name, line, err)
	}
	return value
}

// TestFrozenReplicaDoesNotAllowRevokedUser stops a replica and continues it after the watcher
// has fallen silent. The replica then reads old barriers, which must count as old.
func TestFrozenReplicaDoesNotAllowRevokedUser(t *testing.T) {
	r := newReplicated(t)
	r.second.Signal(syscall.SIGSTOP)
	r.beats(3)
	release := sync.OnceFunc(r.reflector.Pause())
	defer release()
	paused := time.Now()
	r.remove(kinds.PolicyBindings(), "alice")
	r.first.silent(t)
	// The first replica may count a barrier as older than it is, by the time that NATS takes to answer. So its silence
	// does not prove that the second one must be silent, too.
	<-time.After(time.Until(paused.Add(staleness)))
	until := r.second.never(t, "alice")
	r.second.Signal(syscall.SIGCONT)
	testenv.Eventually(t, soon, func() error { // The replica continues and has read the stream.
		if age := r.second.metric(t, "entail_view_age_seconds"); age < staleness.Seconds() {
			return fmt.Errorf("got view age %v s", age)
		}
		return r.second.reads(t, r.first)
	})
	release()
	until()
	r.first.says(t, "alice", false)
	r.second.says(t, "bob", true)
}

// beats waits for n barriers.
func (r *replicated) beats(n uint64) {
	r.T.Helper()
	first := uint64(0)
	testenv.Eventually(r.T, soon, func() error {
		last, _, err := publish.New(r.JS).LastBarrier(r.T.Context(), "local")
		if err != nil {
			return err
		}
		if first == 0 {
			first = last.GetNumber()
		}
		if more := last.GetNumber() - first; more < n {
			return fmt.Errorf("%d barriers", more)
		}
		return nil
	})
}

// reads returns nil once a replica has read as far as another had.
func (r *replica) reads(t *testing.T, other *replica) error {
	t.Helper()
	want := other.metric(t, "entail_view_position")
	if is := r.metric(t, "entail_view_position"); is < want {
		return fmt.Errorf("got last change %v, want %v as in the other replica", is, want)
	}
	return nil
}

// TestDisconnectedReplicaRefusesMinRevision cuts a replica off from NATS. It answers from its state until that
// is too old, and its metrics show the lag. A client with a newer revision gets no answer from it.
func TestDisconnectedReplicaRefusesMinRevision(t *testing.T) {
	r := newReplicated(t)
	mend := r.second.path.cut()
	r.remove(kinds.PolicyBindings(), "alice")
	r.first.says(t, "alice", false)
	heard, err := r.first.client.CheckAccess(t.Context(), question("alice", nil))
	if err != nil || heard.GetAllowed() {
		t.Fatalf("%v, %v", heard, err)
	}
	known := &accessv1.AtLeast{Revision: heard.GetRevision()}
	if answer, err := r.second.client.CheckAccess(t.Context(), question("alice", known)); err == nil {
		t.Errorf("revision %s required: got allowed %v at revision %s, want an error", heard.GetRevision(), answer.GetAllowed(), answer.GetRevision())
	}
	if behind := r.first.metric(t, "entail_view_last_change") - r.second.metric(t, "entail_view_last_change"); behind < 1 {
		t.Errorf("got a lag of %v changes in the metrics", behind)
	}
	r.second.silent(t)
	if age := r.second.metric(t, "entail_view_age_seconds"); age < staleness.Seconds() {
		t.Errorf("stale replica: got view age of %v s", age)
	}
	until := r.second.never(t, "alice")
	mend()
	until()
	r.second.says(t, "bob", true)
	testenv.Eventually(t, soon, func() error { return r.alike(t) })
}

// alike returns nil if both replicas report the same state. The marks that each has read may differ.
func (r *replicated) alike(t *testing.T) error {
	t.Helper()
	for _, name := range []string{"entail_view_last_change", "entail_view_digest"} {
		if one, other := r.first.metric(t, name), r.second.metric(t, name); one != other {
			return fmt.Errorf("%s: got %v and %v, want equal values", name, one, other)
		}
	}
	return nil
}

// TestRestoredStreamDoesNotRestoreAccess restores NATS from a backup. It lacks changes that the replicas
// have read, and uses their numbers again. Earlier revocations must stay in force, and later ones must be received.
func TestRestoredStreamDoesNotRestoreAccess(t *testing.T) {
	r := newReplicated(t)
	r.NATS.Stop()
	restore := r.NATS.Backup(t)
	r.NATS.Start(t)
	r.remove(kinds.PolicyBindings(), "alice")
	for version := range 300 { // More messages than the marks of the replicas in this test.
		r.create(kinds.IAMUsers(), fmt.Sprint("later-", version), map[string]any{"email": "later@example.com"})
	}
	var asking []func()
	for _, one := range []*replica{r.first, r.second} {
		one.says(t, "alice", false)
		asking = append(asking, one.never(t, "alice"))
	}
	r.NATS.Stop()
	restore()
	r.NATS.Start(t)
	r.remove(kinds.PolicyBindings(), "bob")
	for _, one := range []*replica{r.first, r.second} {
		one.says(t, "bob", false)
	}
	for _, until := range asking {
		until()
	}
	testenv.Eventually(t, soon, func() error { return r.alike(t) })
}

// question returns the request whether a user may get the project web.
func question(user string, least *accessv1.AtLeast) *accessv1.CheckAccessRequest {
	return &accessv1.CheckAccessRequest{Subject: &accessv1.Subject{User: user}, Verb: "get", Resource: projectNamed("web"), AtLeast: least}
}

// path carries connections to a server until it is cut. Then no data passes, and neither end is notified.
type path struct {
	net.Listener

	t       testing.TB
	to      string
	mu      sync.Mutex
	carried []net.Conn
	// open is locked while no data passes.
	open sync.RWMutex
}

func newPath(t testing.TB, to string) *path {
	t.Helper()
	listener := testenv.ListenLoopback(t)
	p := &path{t: t, Listener: listener, to: to}
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			carrying.Go(func() { p.carry(t.Context(), from) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, c := range p.carried {
			_ = c.Close()
		}
		p.mu.Unlock()
		carrying.Wait()
	})
	return p
}

func (p *path) carry(ctx context.Context, from net.Conn) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.to)
	if err != nil {
		return // The server is down.
	}
	defer to.Close()
	p.mu.Lock()
	p.carried = append(p.carried, from, to)
	p.mu.Unlock()
	ended := make(chan error, 2)
	go func() { ended <- p.copy(to, from) }()
	go func() { ended <- p.copy(from, to) }()
	<-ended
	_, _ = from.Close(), to.Close()
	<-ended
}

func (p *path) copy(to io.Writer, from io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.open.RLock()
		_, failed := to.Write(buffer[:n])
		p.open.RUnlock()
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
}

// cut stops all data until the returned function is called. Waiting data then passes.
func (p *path) cut() (mend func()) {
	p.open.Lock()
	mend = sync.OnceFunc(p.open.Unlock)
	p.t.Cleanup(mend)
	return mend
}
