package command_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/entail/internal/command"
)

// fakeSyncService is a SyncService with prepared answers.
type fakeSyncService struct {
	syncv1connect.UnimplementedSyncServiceHandler
	trace  func(*syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error)
	replay func(*syncv1.ReplayRequest) (*syncv1.ReplayResponse, error)
	list   func(*syncv1.ListDeadLettersRequest) (*syncv1.ListDeadLettersResponse, error)
}

func (a fakeSyncService) TraceObject(_ context.Context, r *syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) {
	return a.trace(r)
}

func (a fakeSyncService) Replay(_ context.Context, r *syncv1.ReplayRequest) (*syncv1.ReplayResponse, error) {
	return a.replay(r)
}

func (a fakeSyncService) ListDeadLetters(_ context.Context, r *syncv1.ListDeadLettersRequest) (*syncv1.ListDeadLettersResponse, error) {
	return a.list(r)
}

func (fakeSyncService) GetStatus(context.Context, *syncv1.GetStatusRequest) (*syncv1.GetStatusResponse, error) {
	return &syncv1.GetStatusResponse{Services: []*syncv1.Service{{Name: "store-sync"}}}, nil
}

func (fakeSyncService) Resume(context.Context, *syncv1.ResumeRequest) (*syncv1.ResumeResponse, error) {
	return &syncv1.ResumeResponse{Halted: "three forgeries"}, nil
}

func (fakeSyncService) GetDeadLetter(_ context.Context, r *syncv1.GetDeadLetterRequest) (*syncv1.GetDeadLetterResponse, error) {
	return &syncv1.GetDeadLetterResponse{DeadLetter: &syncv1.DeadLetter{Id: r.GetId(), Reason: "no sense"}}, nil
}

func (fakeSyncService) DiscardDeadLetter(_ context.Context, r *syncv1.DiscardDeadLetterRequest) (*syncv1.DiscardDeadLetterResponse, error) {
	letter := &syncv1.DeadLetter{Id: r.GetId(), Service: "tuple-sync", OriginalSequence: 42}
	return &syncv1.DiscardDeadLetterResponse{DeadLetter: letter, MessageRemoved: r.GetId() == 8}, nil
}

func serve(t *testing.T, a fakeSyncService, wrap func(http.Handler) http.Handler) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(syncv1connect.NewSyncServiceHandler(a))
	var handler http.Handler = mux
	if wrap != nil {
		handler = wrap(mux)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// commandResult holds the output and the exit code of a run.
type commandResult struct {
	code     int
	out, err string
}

func run(t *testing.T, env map[string]string, args ...string) commandResult {
	t.Helper()
	var out, err bytes.Buffer
	code := command.Run(t.Context(), args, command.IOStreams{
		In: strings.NewReader(""), Out: &out, Err: &err, Getenv: func(name string) string { return env[name] },
	})
	return commandResult{code: code, out: out.String(), err: err.String()}
}

func demo(steps ...*syncv1.Step) *syncv1.TraceObjectResponse {
	return &syncv1.TraceObjectResponse{
		Ref:      &eventv1.ObjectRef{Cluster: "local", Group: "core.platform-mesh.io", Resource: "stores", Name: "demo"},
		Sequence: 3, Steps: steps,
	}
}

func step(outcome eventv1.Outcome) *syncv1.Step {
	return &syncv1.Step{Current: true, Result: &eventv1.ResourceResult{Service: "store-sync", Outcome: outcome, Message: "m"}}
}

func startRefusingService(code connect.Code) fakeSyncService {
	err := connect.NewError(code, errors.New("the reason"))
	return fakeSyncService{
		trace: func(*syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) { return nil, err },
		list:  func(*syncv1.ListDeadLettersRequest) (*syncv1.ListDeadLettersResponse, error) { return nil, err },
	}
}

func TestExitCodesDistinguishFailures(t *testing.T) {
	tests := map[string]struct {
		server fakeSyncService
		args   []string
		want   int
	}{
		"an answer":                    {args: []string{"status"}, want: 0},
		"an unknown command":           {args: []string{"bogus"}, want: 2},
		"an unknown flag":              {args: []string{"status", "--bogus"}, want: 2},
		"an argument missing":          {args: []string{"trace"}, want: 2},
		"an argument too many":         {args: []string{"status", "x"}, want: 2},
		"an object without a kind":     {args: []string{"trace", "demo"}, want: 2},
		"an object with three slashes": {args: []string{"trace", "store/a/b/c"}, want: 2},
		"an object without a name":     {args: []string{"replay", "policydocument/a/"}, want: 2},
		"a letter that is no number":   {args: []string{"deadletters", "show", "x"}, want: 2},
		"letter zero":                  {args: []string{"replay", "0"}, want: 2},
		"a limit of nothing":           {args: []string{"deadletters", "list", "--limit", "0"}, want: 2},
		"an unknown format":            {args: []string{"status", "-o", "xml"}, want: 2},
		"a server that is no URL":      {args: []string{"status", "--server", "localhost:1"}, want: 2},
		"a token file that is missing": {args: []string{"status", "--token-file", "/nowhere"}, want: 2},
		"a CA file that is missing":    {args: []string{"status", "--ca-file", "/nowhere"}, want: 2},
		"a refused question":           {server: startRefusingService(connect.CodeInvalidArgument), args: []string{"trace", "store/x"}, want: 2},
		"an unknown object":            {server: startRefusingService(connect.CodeNotFound), args: []string{"trace", "store/x"}, want: 3},
		"a server without an answer":   {server: startRefusingService(connect.CodeUnavailable), args: []string{"trace", "store/x"}, want: 4},
		"a server that does not exist": {args: []string{"status", "--server", "http://127.0.0.1:1"}, want: 4},
		"a server that fails":          {server: startRefusingService(connect.CodeInternal), args: []string{"deadletters", "list"}, want: 1},
		"a question that is forbidden": {server: startRefusingService(connect.CodePermissionDenied), args: []string{"trace", "store/x"}, want: 1},
		"help":                         {args: []string{"trace", "--help"}, want: 0},
		"completion":                   {args: []string{"completion", "bash"}, want: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := run(t, map[string]string{"ENTAIL_SERVER": serve(t, test.server, nil)}, test.args...)
			if got.code != test.want {
				t.Errorf("exit code %d, want %d; %s", got.code, test.want, got.err)
			}
			if told := got.err != ""; told != (test.want != 0) {
				t.Errorf("standard error is %q", got.err)
			}
		})
	}
}

func TestDescribeErrorAddsRemedy(t *testing.T) {
	tests := map[string]struct {
		server fakeSyncService
		args   []string
		want   string
	}{
		"no server":          {args: []string{"status", "--server", "http://127.0.0.1:1"}, want: "is `entail up` running?"},
		"no permission":      {server: startRefusingService(connect.CodePermissionDenied), args: []string{"trace", "store/x"}, want: "--token-file"},
		"a wrong command":    {args: []string{"bogus"}, want: "--help shows how"},
		"a misspelt command": {args: []string{"chek"}, want: `unknown command "chek" for "entail"; did you mean check? (--help`},
		"a missing argument": {args: []string{"trace"}, want: "received 0; usage: entail trace KIND/[NAMESPACE/]NAME [flags] (--help"},
		"no OpenSearch":      {args: []string{"opensearch", "roles", "--server", "http://127.0.0.1:1"}, want: "is `entail up --opensearch` running?"},
		"a token in clear":   {args: []string{"status", "--server", "http://203.0.113.1"}, want: "use an https URL"},
		"the server's words": {server: startRefusingService(connect.CodeNotFound), args: []string{"trace", "store/x"}, want: "the reason"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"ENTAIL_SERVER": serve(t, test.server, nil), "ENTAIL_TOKEN": "secret"}
			if got := run(t, env, test.args...); !strings.Contains(got.err, test.want) || strings.Contains(got.err, "secret") {
				t.Errorf("standard error is %q, want %q in it", got.err, test.want)
			}
		})
	}
}

func TestTraceRequestsObjectAndPrintsAnswer(t *testing.T) {
	var asked *syncv1.TraceObjectRequest
	server := serve(t, fakeSyncService{trace: func(r *syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) {
		asked = r
		return demo(step(eventv1.Outcome_OUTCOME_APPLIED)), nil
	}}, nil)
	table := run(t, nil, "trace", "store/demo", "-n", "space", "--server", server)
	if asked.GetResource() != "store" || asked.GetName() != "demo" || asked.GetNamespace() != "space" {
		t.Errorf("asked for %v", asked)
	}
	if !strings.Contains(table.out, "applied by store-sync") {
		t.Errorf("got %q", table.out)
	}
	if run(t, nil, "trace", "policydocument/team-a/demo", "-n", "space", "--server", server); asked.GetNamespace() != "team-a" || asked.GetName() != "demo" {
		t.Errorf("got a question about %v, want policydocument demo in team-a", asked)
	}
	for format, want := range map[string]string{"json": `"sequence": "3"`, "yaml": `sequence: "3"`} {
		if got := run(t, nil, "trace", "store/demo", "-o", format, "--server", server); !strings.Contains(got.out, want) {
			t.Errorf("-o %s: got %q, want %q in it", format, got.out, want)
		}
	}
}

func TestTraceWaitsUntilEveryServiceIsDone(t *testing.T) {
	var asked atomic.Int32
	server := serve(t, fakeSyncService{trace: func(*syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) {
		switch asked.Add(1) {
		case 1:
			return nil, connect.NewError(connect.CodeNotFound, errors.New("not yet"))
		case 2:
			return demo(step(eventv1.Outcome_OUTCOME_PENDING)), nil
		case 3:
			return demo(&syncv1.Step{Result: step(eventv1.Outcome_OUTCOME_APPLIED).GetResult()}), nil
		default:
			return demo(step(eventv1.Outcome_OUTCOME_APPLIED)), nil
		}
	}}, nil)
	got := run(t, nil, "trace", "store/demo", "--wait", "10s", "--server", server)
	if got.code != 0 || asked.Load() != 4 || !strings.Contains(got.out, "applied by store-sync") {
		t.Errorf("exit code %d after %d questions: %s%s", got.code, asked.Load(), got.out, got.err)
	}
}

func TestTraceWaitFailsWithoutObject(t *testing.T) {
	tests := map[string]struct {
		step *syncv1.Step
		code int
		want string
	}{
		"a service rejects it": {step: step(eventv1.Outcome_OUTCOME_REJECTED), code: 1, want: "store-sync could not apply it: m"},
		"the time is over":     {step: step(eventv1.Outcome_OUTCOME_RETRYING), code: 4, want: "was not applied by every service within 10ms"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := serve(t, fakeSyncService{trace: func(*syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) {
				return demo(test.step), nil
			}}, nil)
			got := run(t, nil, "trace", "store/demo", "--wait", "10ms", "--server", server)
			if got.code != test.code || !strings.Contains(got.err, test.want) || strings.Contains(got.err, "running?") || got.out == "" {
				t.Errorf("exit code %d, output %q, error %q", got.code, got.out, got.err)
			}
		})
	}
}

func TestReplayRequestNamesDeadLetterOrObject(t *testing.T) {
	var asked *syncv1.ReplayRequest
	server := serve(t, fakeSyncService{
		trace: func(*syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) { return demo(), nil },
		replay: func(r *syncv1.ReplayRequest) (*syncv1.ReplayResponse, error) {
			asked = r
			return &syncv1.ReplayResponse{Ref: demo().GetRef(), Sequence: 8}, nil
		},
	}, nil)
	got := run(t, nil, "replay", "17", "--server", server)
	if asked.GetDeadLetterId() != 17 || got.out != "stores.core.platform-mesh.io/demo published again as sequence 8\n" {
		t.Errorf("asked %v, got %q %q", asked, got.out, got.err)
	}
	run(t, nil, "replay", "store/demo", "--server", server)
	if ref := asked.GetRef(); ref.GetName() != "demo" || ref.GetCluster() != "local" {
		t.Errorf("asked %v", asked)
	}
}

func TestBusResumePrintsWhyServicesWereHalted(t *testing.T) {
	server := serve(t, fakeSyncService{}, nil)
	if got := run(t, nil, "bus", "resume", "--server", server); got.out != "services are resumed; they were halted: three forgeries\n" {
		t.Errorf("got %q %q", got.out, got.err)
	}
}

func TestDeadLettersListFollowsPagesUpToLimit(t *testing.T) {
	var sizes []int32
	server := serve(t, fakeSyncService{list: func(r *syncv1.ListDeadLettersRequest) (*syncv1.ListDeadLettersResponse, error) {
		sizes = append(sizes, r.GetPageSize())
		page := &syncv1.ListDeadLettersResponse{NextPageToken: r.GetPageToken() + "x"}
		for range min(r.GetPageSize(), 2) {
			page.DeadLetters = append(page.DeadLetters, &syncv1.DeadLetter{Id: 1, Service: r.GetService()})
		}
		return page, nil
	}}, nil)
	got := run(t, nil, "deadletters", "list", "--limit", "5", "--service", "tuple-sync", "--server", server)
	if lines := strings.Count(got.out, "tuple-sync"); lines != 5 || len(sizes) != 3 {
		t.Errorf("%d letters in pages of %v: %s%s", lines, sizes, got.out, got.err)
	}
	if got := run(t, nil, "deadletters", "show", "7", "--server", server); !strings.Contains(got.out, "no sense") {
		t.Errorf("show: %q %q", got.out, got.err)
	}
}

func TestDeadLettersDiscardPrintsDiscardedLetter(t *testing.T) {
	server := serve(t, fakeSyncService{}, nil)
	for id, want := range map[string]string{
		"7": "dead letter 7 of tuple-sync discarded\n",
		"8": "dead letter 8 of tuple-sync discarded; message 42 was no change, and has left the bus\n",
	} {
		if got := run(t, nil, "deadletters", "discard", id, "--server", server); got.out != want {
			t.Errorf("got %q %q, want %q", got.out, got.err, want)
		}
	}
}

func TestTokenIsSentToServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"of the environment":         {env: map[string]string{"ENTAIL_TOKEN": "from-env"}, want: "Bearer from-env"},
		"of a file, which wins":      {env: map[string]string{"ENTAIL_TOKEN": "from-env"}, args: []string{"--token-file", file}, want: "Bearer from-file"},
		"of a file the variable has": {env: map[string]string{"ENTAIL_TOKEN_FILE": file}, want: "Bearer from-file"},
		"none":                       {want: ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var header atomic.Value
			server := serve(t, fakeSyncService{}, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					header.Store(r.Header.Get("Authorization"))
					next.ServeHTTP(w, r)
				})
			})
			run(t, test.env, append([]string{"status", "--server", server}, test.args...)...)
			if header.Load() != test.want {
				t.Errorf("the server got %q, want %q", header.Load(), test.want)
			}
		})
	}
}

func TestVersionPrintsTextAndJSON(t *testing.T) {
	if got := run(t, nil, "version"); got.code != 0 || !strings.HasPrefix(got.out, "entail ") {
		t.Errorf("got %q", got.out)
	}
	if got := run(t, nil, "version", "-o", "json"); !strings.Contains(got.out, `"go": "go`) {
		t.Errorf("got %q", got.out)
	}
}
