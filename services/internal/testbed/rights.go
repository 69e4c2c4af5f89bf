package testbed

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// commitEnv names the commit that chooses the rights that CI revokes.
	commitEnv = "ENTAIL_COMMIT"
	// rightsTimeout bounds each wait of a rights test.
	rightsTimeout = time.Minute
)

// RightsSuite revokes the rights of one service, one at a time. The service must report each missing right, and go on
// once it has the right again.
type RightsSuite struct {
	*Bed

	Service string
	// Start starts the service, which logs to Log, as JSON.
	Start func() *Running
	Log   *Log
	// Idle waits until the service has nothing left to do.
	Idle func()
	// Call sends a request to the service. The caller has no rights.
	Call func(ctx context.Context, caller *http.Client, url string) error
	// Webhooks are those that the service registers; nil for none.
	Webhooks *Webhooks
	// Uses is the table: how a test makes the service need a right. Keys are "verb resource", "verb *" or "* resource", in this order.
	// The suite knows some uses itself. A nil function leaves the right to another test.
	Uses map[string]func(RightCase) RightUse

	whole   testing.TB
	running *Running
}

// RightCase is one right of a table, with a name for the objects of its test.
type RightCase struct {
	Right
	Kind kinds.Kind
	Name string
}

// RightUse is how a test makes a service need a right. Functions may be nil.
type RightUse struct {
	// Prepare runs while the service has the right, and Need after it was revoked.
	Prepare, Need func()
	// Report is what the service logs without the right, by default the denial of the API server.
	Report string
	// Reported waits for further reports.
	Reported func()
	// Done waits until the service has done what it needed the right for.
	Done func()
}

// Test runs the suite: over all rights in a nightly run, else over a choice.
func (s *RightsSuite) Test(t *testing.T) {
	t.Helper()
	s.whole = s.T
	s.Kube.cluster.rights.begin(s.Service)
	s.running = s.Start()
	s.Idle()
	rights := Rights(s.Service)
	if !Nightly {
		rights = sample(rights, os.Getenv(commitEnv))
	}
	t.Logf("revokes %d rights: %v", len(rights), rights)
	for i, right := range rights {
		kind, _ := kinds.Of(right.GroupResource)
		c := RightCase{right, kind, fmt.Sprintf("part%d", i)}
		if use := s.use(c); use != nil {
			t.Run(right.String(), func(t *testing.T) { s.revoke(t, c, use) })
		}
	}
}

// URL returns where the service answers.
func (s *RightsSuite) URL() string { return s.running.URL }

// Restart ends the service and starts it again; between runs in the meantime.
func (s *RightsSuite) Restart(between ...func()) {
	s.T.Helper()
	s.running.Stop()
	for _, f := range between {
		f()
	}
	sub := s.T
	s.T = s.whole // The service outlives the subtest.
	s.running = s.Start()
	s.T = sub
}

// revoke tests one right.
func (s *RightsSuite) revoke(t *testing.T, c RightCase, use func(RightCase) RightUse) {
	t.Helper()
	s.T = t
	defer func() { s.T = s.whole }()
	u := use(c)
	call(u.Prepare)
	logged := len(s.Log.Bytes())
	restore := s.Kube.Revoke(t, s.Service, c.Right)
	call(u.Need)
	Eventually(t, rightsTimeout, func() error { return s.Log.Warns(logged, cmp.Or(u.Report, c.report())) })
	call(u.Reported)
	restore()
	call(u.Done)
	s.Idle()
	s.Kube.cluster.rights.note(c.Right)
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// report returns what a service logs without the right. An admission policy words its own denials.
func (c RightCase) report() string {
	if c.isAsked() {
		return "the verb " + c.Verb + " on"
	}
	return c.Denial()
}

// isAsked reports whether the verb is no verb of requests: the API server asks for it while it admits one.
func (r Right) isAsked() bool {
	return !slices.Contains([]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// sample returns one right for each verb, by a hash of the commit, and each that only the API server asks for: no request
// shows that such a right is used.
func sample(rights []Right, commit string) []Right {
	byVerb := map[string][]Right{}
	for _, r := range rights {
		byVerb[r.Verb] = append(byVerb[r.Verb], r)
	}
	return slices.DeleteFunc(slices.Clone(rights), func(r Right) bool {
		same := byVerb[r.Verb]
		return !r.isAsked() && r != same[pick(commit, len(same))]
	})
}

// pick returns a number below n: always 0 without a commit.
func pick(commit string, n int) int {
	if commit == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(commit))
	return int(h.Sum32() % uint32(n)) //nolint:gosec // There are few rights.
}

// use finds a right in the table of the service, or among the uses that services share.
func (s *RightsSuite) use(c RightCase) func(RightCase) RightUse {
	s.T.Helper()
	for _, key := range []string{c.Verb + " " + c.Resource, c.Verb + " *", "* " + c.Resource} {
		for _, table := range []map[string]func(RightCase) RightUse{s.Uses, s.sharedUses()} {
			if use, known := table[key]; known {
				return use
			}
		}
	}
	s.T.Fatalf("%s: no test needs the right to %s; add a use of it to the table", s.Service, c.Right)
	return nil
}

func (s *RightsSuite) sharedUses() map[string]func(RightCase) RightUse {
	uses := map[string]func(RightCase) RightUse{
		"create tokenreviews":         s.called,
		"create subjectaccessreviews": s.called,
		"get *":                       s.read,
		"get namespaces": func(RightCase) RightUse { // It is read at the start.
			return RightUse{Need: func() { s.Restart() }}
		},
	}
	if s.Webhooks != nil {
		for _, verb := range []string{"get", "create", "update", "patch"} {
			uses[verb+" validatingwebhookconfigurations"], uses[verb+" secrets"] = s.registers, s.registers
		}
	}
	return uses
}

// called sends a request of a caller that the service does not know yet.
func (s *RightsSuite) called(c RightCase) RightUse {
	var ask func(context.Context) error
	return RightUse{
		Need: func() {
			_, caller := s.Kube.Caller(s.T, c.Name)
			ask = func(ctx context.Context) error { return s.Call(ctx, caller, s.URL()) }
			Answers(s.T, rightsTimeout, connect.CodeInternal, ask)
		},
		Done: func() { Answers(s.T, rightsTimeout, connect.CodePermissionDenied, ask) },
	}
}

// read publishes of an object that it is too large for the bus. The service reads it from the API server.
func (s *RightsSuite) read(c RightCase) RightUse {
	return RightUse{Need: func() {
		objects := s.List(c.Kind).Items
		if len(objects) == 0 {
			s.T.Fatalf("no %s is there to be read", c.Resource)
		}
		object := slices.MinFunc(objects, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
		s.Oversize(c.Kind, object.GetNamespace(), object.GetName())
	}}
}

// registers takes from the service what it has registered of its webhooks.
func (s *RightsSuite) registers(c RightCase) RightUse {
	registered := func() {
		s.T.Helper()
		Eventually(s.T, rightsTimeout, func() error { return s.Webhooks.Kept(s.T.Context()) })
	}
	return RightUse{
		Prepare: registered,
		Need: func() {
			take := s.Webhooks.Delete
			if c.Verb == "update" {
				take = s.Webhooks.Empty
			}
			if err := take(s.T.Context()); err != nil {
				s.T.Fatal(err)
			}
		},
		Done: registered,
	}
}

// rightsUse is what the tests of a service's package have shown of its rights.
type rightsUse struct {
	service string
	shown   []Right
}

func (u *rightsUse) begin(service string) { u.service = service }

// note records that the service reported the right missing.
func (u *rightsUse) note(right Right) { u.shown = append(u.shown, right) }

// wholePackage reports whether no flag leaves out tests.
func wholePackage() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// checkRights returns an error that names the rights that no test of the package used.
func (c *cluster) checkRights() error {
	if c.rights.service == "" {
		return nil // The package tests no service as a whole.
	}
	left, err := audit(c.root).unused(c.rights.service)
	var problems []error
	for _, right := range left {
		if !right.isAsked() || !slices.Contains(c.rights.shown, right) {
			problems = append(problems, fmt.Errorf("%s: no test used the right to %s; add a test that needs it, or remove it from services/internal/rbac",
				c.rights.service, right))
		}
	}
	return errors.Join(append(problems, err)...)
}
