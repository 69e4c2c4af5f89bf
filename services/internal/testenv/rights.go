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
	// AwaitIdle waits until the service has no work left.
	AwaitIdle func()
	// CallWithoutRights sends a request to the service as a caller without rights.
	CallWithoutRights func(ctx context.Context, caller *http.Client, url string) error
	// WebhookConfiguration is the name of the service's webhook configuration; empty if there is none.
	WebhookConfiguration string
	// CreateObjects creates an object of each kind that the service reads, after the service has started. It may be nil.
	CreateObjects func()
	// Triggers describes, for each right, how a test makes the service need it. Keys are "verb resource", "verb *" or "*
	// resource", in order of precedence. The suite itself describes the rights that all services share.
	Triggers map[string]RightTrigger
	// ShouldTest selects the rights to test. Nil selects all.
	ShouldTest func(Right) bool

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
	// Prepare runs while the service has the right. RequireRight runs after the right was revoked.
	Prepare, RequireRight func(RightCase)
	// LogText is the text that the service logs without the right. The default is the API server's denial.
	LogText string
	// AwaitReport waits for other reports of the missing right. If SkipLog is set, the log is not checked.
	AwaitReport func(RightCase)
	SkipLog     bool
	// AwaitDone waits until the service has finished the work that needed the right.
	AwaitDone func(RightCase)
	// UseRight makes the service use the right if the right is not revoked in this run. If it is nil, other tests use the
	// right.
	UseRight func(RightCase)
	// OtherTest names another test of the missing right.
	OtherTest string
}

// Run runs the suite. A nightly run tests all rights, other runs test a sample.
func (s *RightsSuite) Run(t *testing.T) {
	t.Helper()
	outer := s.T
	s.T, s.whole = t, t
	defer func() { s.T = outer }()
	s.Kube.cluster.rights.service = s.Service
	if s.WebhookConfiguration != "" {
		s.webhooks = s.Kube.WebhookRegistration(t, s.WebhookConfiguration)
		t.Cleanup(func() { _ = s.webhooks.Delete(context.WithoutCancel(t.Context())) })
	}
	s.running = s.Start()
	if s.CreateObjects != nil {
		s.CreateObjects()
	}
	s.AwaitIdle()
	rights := slices.DeleteFunc(ServiceRights(s.Service), func(r Right) bool { return s.ShouldTest != nil && !s.ShouldTest(r) })
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
		case slices.Contains(chosen, right) && use.OtherTest == "":
			t.Run(right.String(), func(t *testing.T) { s.testRevokedRight(t, c, use) })
		case use.UseRight != nil:
			kept = append(kept, func() { use.UseRight(c) })
		}
	}
	for _, use := range kept {
		use()
	}
	s.AwaitIdle()
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

// testRevokedRight revokes one right, makes the service need it, checks that the service reports the missing right, and
// restores the right.
func (s *RightsSuite) testRevokedRight(t *testing.T, c RightCase, use RightTrigger) {
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
	call(use.RequireRight)
	switch {
	case !use.SkipLog:
		Eventually(t, rightsTimeout, func() error { return s.Log.CheckWarning(logged, cmp.Or(use.LogText, c.missingRightText())) })
	case use.AwaitReport == nil:
		t.Fatal("the trigger has SkipLog and no AwaitReport; set AwaitReport")
	}
	call(use.AwaitReport)
	restore()
	call(use.AwaitDone)
	s.AwaitIdle()
	rights := &s.Kube.cluster.rights
	rights.used = append(rights.used, c.Right)
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
		for _, table := range []map[string]RightTrigger{s.Triggers, s.sharedTriggers()} {
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
			s.awaitErrorCode(want)
		}
	}
	called := RightTrigger{
		RequireRight: call(connect.CodeInternal),
		AwaitDone:    func(RightCase) { s.awaitErrorCode(connect.CodePermissionDenied) },
		UseRight:     call(connect.CodePermissionDenied),
	}
	uses := map[string]RightTrigger{
		"create tokenreviews":         called,
		"create subjectaccessreviews": called,
		"get *":                       {RequireRight: s.publishOversized, UseRight: s.publishOversized},
		"get namespaces":              {RequireRight: func(RightCase) { s.Restart() }}, // Only a start reads the namespace.
	}
	registered := func(RightCase) {
		s.T.Helper()
		Eventually(s.T, rightsTimeout, func() error { return s.webhooks.CheckRegisteredWithSecret(s.T.Context()) })
	}
	for _, verb := range []string{"get", "create", "update", "patch"} {
		if s.WebhookConfiguration != "" {
			use := RightTrigger{Prepare: registered, RequireRight: s.removeWebhookRegistration, AwaitDone: registered}
			uses[verb+" validatingwebhookconfigurations"], uses[verb+" secrets"] = use, use
		}
	}
	return uses
}

// awaitErrorCode calls the service until the answer has the code want.
func (s *RightsSuite) awaitErrorCode(want connect.Code) {
	s.T.Helper()
	AwaitErrorCode(s.T, rightsTimeout, want, func(ctx context.Context) error { return s.CallWithoutRights(ctx, s.caller, s.URL()) })
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

// removeWebhookRegistration deletes the service's webhook configuration and its Secret. For the verb update it only
// removes the webhooks from the configuration.
func (s *RightsSuite) removeWebhookRegistration(c RightCase) {
	s.T.Helper()
	take := s.webhooks.Delete
	if c.Verb == "update" {
		take = s.webhooks.RemoveWebhooks
	}
	if err := take(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}
