package testenv

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// commitEnv is the environment variable with the commit. The commit selects the rights that CI revokes.
	commitEnv = "ENTAIL_COMMIT"
	// rightsTimeout bounds each wait of a rights test.
	rightsTimeout = time.Minute
)

// RightsSuite revokes the rights of one service, one at a time. The service must report each missing right, and must
// continue when it has the right again.
type RightsSuite struct {
	*Env

	Service string
	// Start starts the service, which writes its JSON log to Log.
	Start func() *RunningService
	Log   *LogBuffer
	// Idle waits until the service has no work left.
	Idle func()
	// Call sends a request to the service as a caller without rights.
	Call func(ctx context.Context, caller *http.Client, url string) error
	// Guard is the name of the service's webhook configuration; empty if there is none.
	Guard string
	// Fill creates an object of each kind that the service reads, after the service has started. It may be nil.
	Fill func()
	// Uses describes, for each right, how a test makes the service need it. Keys are "verb resource", "verb *" or "*
	// resource", in order of precedence. The suite itself describes the rights that all services share.
	Uses map[string]RightTrigger
	// Only selects the rights to test. Nil selects all.
	Only func(Right) bool

	whole    testing.TB
	running  *RunningService
	webhooks WebhookRegistration
	caller   *http.Client
}

// RightCase is one right to test. Kind is set if services read the kind of its resource. Name is for the test's
// objects.
type RightCase struct {
	Right
	Kind kinds.Kind
	Name string
}

// RightTrigger describes how a test makes a service need a right. Functions may be nil.
type RightTrigger struct {
	// Prepare runs while the service has the right. Need runs after the right was revoked.
	Prepare, Need func(RightCase)
	// Report is the text that the service logs without the right. The default is the API server's denial.
	Report string
	// Reported waits for other reports of the missing right. If Unlogged is set, the log is not checked.
	Reported func(RightCase)
	Unlogged bool
	// Done waits until the service has finished the work that needed the right.
	Done func(RightCase)
	// Keep makes the service use the right if the right is not revoked in this run. If it is nil, other tests use the
	// right.
	Keep func(RightCase)
	// Elsewhere names another test of the missing right.
	Elsewhere string
}

// Run runs the suite. A nightly run tests all rights, other runs test a sample.
func (s *RightsSuite) Run(t *testing.T) {
	t.Helper()
	outer := s.T
	s.T, s.whole = t, t
	defer func() { s.T = outer }()
	s.Kube.cluster.rights.beginService(s.Service)
	if s.Guard != "" {
		s.webhooks = s.Kube.WebhookRegistration(t, s.Guard)
		t.Cleanup(func() { _ = s.webhooks.Delete(context.WithoutCancel(t.Context())) })
	}
	s.running = s.Start()
	if s.Fill != nil {
		s.Fill()
	}
	s.Idle()
	rights := slices.DeleteFunc(ServiceRights(s.Service), func(r Right) bool { return s.Only != nil && !s.Only(r) })
	chosen := ServiceRights(s.Service)
	if !Nightly {
		chosen = sampleRights(chosen, os.Getenv(commitEnv))
	}
	t.Logf("revokes of %d rights: %v", len(rights), chosen)
	var kept []func()
	for i, right := range rights {
		c := RightCase{Right: right, Name: fmt.Sprintf("part%d", i)}
		of := right.GroupResource
		of.Resource, _, _ = strings.Cut(of.Resource, "/")
		c.Kind, _ = kinds.ByResource(of)
		switch use := s.triggerFor(c); {
		case slices.Contains(chosen, right) && use.Elsewhere == "":
			t.Run(right.String(), func(t *testing.T) { s.testRevoked(t, c, use) })
		case use.Keep != nil:
			kept = append(kept, func() { use.Keep(c) })
		}
	}
	for _, use := range kept {
		use()
	}
	s.Idle()
}

// URL returns the address of the service.
func (s *RightsSuite) URL() string { return s.running.URL }

// Restart stops the service, calls the functions, and starts the service again.
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

// testRevoked revokes one right, makes the service need it, checks that the service reports the missing right, and
// restores the right.
func (s *RightsSuite) testRevoked(t *testing.T, c RightCase, use RightTrigger) {
	t.Helper()
	s.T = t
	defer func() { s.T = s.whole }()
	call := func(f func(RightCase)) {
		t.Helper()
		if f != nil {
			f(c)
		}
	}
	call(use.Prepare)
	logged := len(s.Log.Bytes())
	restore := s.Kube.RevokeRight(t, s.Service, c.Right)
	call(use.Need)
	switch {
	case !use.Unlogged:
		Eventually(t, rightsTimeout, func() error { return s.Log.CheckWarning(logged, cmp.Or(use.Report, c.missingRightText())) })
	case use.Reported == nil:
		t.Fatal("the use has neither a log line nor Reported; set one")
	}
	call(use.Reported)
	restore()
	call(use.Done)
	s.Idle()
	s.Kube.cluster.rights.recordReported(c.Right)
}

// missingRightText returns the text that a service logs without the right. Admission policies have their own text.
func (c RightCase) missingRightText() string {
	if c.isAdmissionVerb() {
		return "the verb " + c.Verb + " on"
	}
	return c.DenialText()
}

// isAdmissionVerb reports whether the verb is not a request verb, so that only admission policies check it.
func (r Right) isAdmissionVerb() bool {
	return !slices.Contains([]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// sampleRights returns one right for each verb, selected by a hash of the commit. It adds all rights that only
// admission checks, because the audit log does not show their use.
func sampleRights(rights []Right, commit string) []Right {
	byVerb := map[string][]Right{}
	for _, r := range rights {
		byVerb[r.Verb] = append(byVerb[r.Verb], r)
	}
	return slices.DeleteFunc(slices.Clone(rights), func(r Right) bool {
		same := byVerb[r.Verb]
		return !r.isAdmissionVerb() && r != same[hashToNumber(commit, len(same))]
	})
}

// hashToNumber returns a number below n that depends on the commit. Without a commit it returns 0.
func hashToNumber(commit string, n int) int {
	if commit == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(commit))
	return int(h.Sum32() % uint32(n))
}

// triggerFor returns the use of a right, from the service's table or from the shared table.
func (s *RightsSuite) triggerFor(c RightCase) RightTrigger {
	s.T.Helper()
	for _, key := range []string{c.Verb + " " + c.Resource, c.Verb + " *", "* " + c.Resource} {
		for _, table := range []map[string]RightTrigger{s.Uses, s.sharedTriggers()} {
			if use, known := table[key]; known {
				return use
			}
		}
	}
	s.T.Fatalf("%s: no test needs the right to %s; add a use of it to the table", s.Service, c.Right)
	return RightTrigger{}
}

func (s *RightsSuite) sharedTriggers() map[string]RightTrigger {
	call := func(want connect.Code) func(RightCase) {
		return func(c RightCase) {
			_, s.caller = s.Kube.CreateCaller(s.T, c.Name) // The caller is new, so the service has no cached answer.
			s.awaitCode(want)
		}
	}
	called := RightTrigger{
		Need: call(connect.CodeInternal),
		Done: func(RightCase) { s.awaitCode(connect.CodePermissionDenied) },
		Keep: call(connect.CodePermissionDenied),
	}
	uses := map[string]RightTrigger{
		"create tokenreviews":         called,
		"create subjectaccessreviews": called,
		"get *":                       {Need: s.publishOversized, Keep: s.publishOversized},
		"get namespaces":              {Need: func(RightCase) { s.Restart() }}, // Only a start reads the namespace.
	}
	registered := func(RightCase) {
		s.T.Helper()
		Eventually(s.T, rightsTimeout, func() error { return s.webhooks.CheckRegisteredWithSecret(s.T.Context()) })
	}
	for _, verb := range []string{"get", "create", "update", "patch"} {
		if s.Guard != "" {
			use := RightTrigger{Prepare: registered, Need: s.removeRegistration, Done: registered}
			uses[verb+" validatingwebhookconfigurations"], uses[verb+" secrets"] = use, use
		}
	}
	return uses
}

// awaitCode calls the service until the answer has the code want.
func (s *RightsSuite) awaitCode(want connect.Code) {
	s.T.Helper()
	AwaitErrorCode(s.T, rightsTimeout, want, func(ctx context.Context) error { return s.Call(ctx, s.caller, s.URL()) })
}

// publishOversized publishes that an object is too large for NATS. The service then reads the object from the API
// server.
func (s *RightsSuite) publishOversized(c RightCase) {
	s.T.Helper()
	for _, object := range s.List(c.Kind).Items {
		if !s.LastChange(c.Kind, object.GetNamespace(), object.GetName()).Omitted {
			s.PublishOversized(c.Kind, object.GetNamespace(), object.GetName())
			return
		}
	}
	s.T.Fatalf("got no %s, want one that the service reads", c.Resource)
}

// removeRegistration deletes the service's webhook configuration and its Secret. For the verb update it only removes
// the webhooks from the configuration.
func (s *RightsSuite) removeRegistration(c RightCase) {
	s.T.Helper()
	take := s.webhooks.Delete
	if c.Verb == "update" {
		take = s.webhooks.RemoveWebhooks
	}
	if err := take(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}
