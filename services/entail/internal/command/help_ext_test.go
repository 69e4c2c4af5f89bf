package command_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	"github.com/entail-dev/entail/services/entail/internal/command"
)

// startAllAPIs starts all APIs with good answers, and returns the environment with their URLs.
func startAllAPIs(t *testing.T) (env map[string]string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(syncv1connect.NewSyncServiceHandler(fakeSyncService{
		trace: func(*syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) {
			return demo(step(eventv1.Outcome_OUTCOME_APPLIED)), nil
		},
		replay: func(*syncv1.ReplayRequest) (*syncv1.ReplayResponse, error) { return &syncv1.ReplayResponse{}, nil },
		list: func(*syncv1.ListDeadLettersRequest) (*syncv1.ListDeadLettersResponse, error) {
			return &syncv1.ListDeadLettersResponse{}, nil
		},
	}))
	mux.Handle(inferencev1connect.NewInferenceServiceHandler(&fakeInferenceService{
		pages: 2, held: make([]*inferencev1.WhoHasRoleRequest, 1), preview: &inferencev1.Preview{}, drift: &inferencev1.CheckDriftResponse{InStep: true},
	}))
	mux.Handle(storev1connect.NewStoreServiceHandler(&fakeStoreService{preview: &storev1.PreviewModelResponse{Accepted: true}}))
	mux.Handle(tuplev1connect.NewTupleServiceHandler(&fakeTupleService{}))
	mux.Handle(accessv1connect.NewAccessServiceHandler(&fakeAccessService{allowed: true}))
	mux.Handle(opensearchv1connect.NewOpenSearchServiceHandler(&fakeOpenSearchService{}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return map[string]string{
		"ENTAIL_SERVER": server.URL, "ENTAIL_INFERENCE_SERVER": server.URL, "ENTAIL_STORE_SERVER": server.URL, "ENTAIL_TUPLE_SERVER": server.URL,
		"ENTAIL_ACCESS_SERVER": server.URL, "ENTAIL_OPENSEARCH_SERVER": server.URL,
		"HOME": t.TempDir(),
	}
}

// TestHelpExamplesRun runs each example; package policycommand tests those of `entail policy`.
func TestHelpExamplesRun(t *testing.T) {
	env := startAllAPIs(t)
	t.Chdir(t.TempDir())
	first, _, _ := strings.Cut(ruleFile, "---")
	for file, text := range map[string]string{
		"rules.yaml": first, "documents.fga": "module documents", "policy.yaml": "actions: [{name: read_it}]", "binding.yaml": bindingFile,
		"rolebinding.yaml": readersFile, "questions.txt": "user:beth viewer document:roadmap\n", "context.json": "{}",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for _, cmd := range leafCommands(command.Root(command.IOStreams{Getenv: func(name string) string { return env[name] }})) {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			ran++
			ours, _, _ := strings.Cut(line, " | ") // Only run the command before a pipe.
			words := strings.Fields(ours)
			if len(words) == 0 || !strings.HasPrefix(strings.Join(words, " ")+" ", cmd.CommandPath()+" ") {
				t.Errorf("%s has the example %q", cmd.CommandPath(), line)
				continue
			}
			if got := run(t, env, words[1:]...); got.code != 0 || got.err != "" {
				t.Errorf("%s: %+v", line, got)
			}
		}
	}
	if ran < 25 {
		t.Errorf("only %d examples", ran)
	}
}

// TestHelpOpensWithVerbAndHasExamples covers every command, also those that no test runs.
func TestHelpOpensWithVerbAndHasExamples(t *testing.T) {
	verbs := []string{"Show", "List", "Check", "Explain", "Preview", "Print", "Run", "Install", "Remove"}
	root := command.Root(command.IOStreams{Getenv: func(string) string { return "" }})
	var walk func(*cobra.Command)
	walk = func(parent *cobra.Command) {
		for _, cmd := range parent.Commands() {
			if verb, _, _ := strings.Cut(cmd.Short, " "); !slices.Contains(verbs, strings.TrimRight(verb, ",")) {
				t.Errorf("%s: got Short %q, want it to open with one of %q", cmd.CommandPath(), cmd.Short, verbs)
			}
			if cmd.Runnable() && cmd.Example == "" {
				t.Errorf("%s: got no example, want one", cmd.CommandPath())
			}
			if parent == root && cmd.GroupID == "" {
				t.Errorf("%s: got no group of the help, want one", cmd.CommandPath())
			}
			walk(cmd)
		}
	}
	walk(root)
}

// leafCommands returns the commands without subcommands. It leaves out those that run servers or change a cluster, and
// those that other tests cover.
func leafCommands(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range cmd.Commands() {
		if slices.Contains([]string{"up", "install", "uninstall", "policy", "completion", "help"}, sub.Name()) {
			continue
		}
		if sub.Runnable() {
			all = append(all, sub)
		}
		all = append(all, leafCommands(sub)...)
	}
	return all
}
