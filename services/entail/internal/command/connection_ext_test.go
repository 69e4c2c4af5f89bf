package command_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/entail/internal/command"
)

// startTLSService starts a SyncService over TLS, and returns its URL and the file with its authority.
func startTLSService(t *testing.T) (url, authority string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(syncv1connect.NewSyncServiceHandler(fakeSyncService{}))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	authority = filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, authority
}

func TestCAFileIsUsedToVerifyServer(t *testing.T) {
	url, authority := startTLSService(t)
	none := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(none, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		"named by a flag":          {args: []string{"--ca-file", authority}},
		"named by a variable":      {env: map[string]string{"ENTAIL_CA_FILE": authority}},
		"a token is safe there":    {env: map[string]string{"ENTAIL_TOKEN": "secret"}, args: []string{"--ca-file", authority}},
		"not named":                {code: 4, want: "certificate"},
		"a file without any":       {args: []string{"--ca-file", none}, code: 2, want: "holds no PEM certificate"},
		"a file that is not there": {args: []string{"--ca-file", none + ".other"}, code: 2, want: "read --ca-file"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.env, append([]string{"status", "--server", url}, test.args...)...)
			if got.code != test.code || !strings.Contains(got.err, test.want) || strings.Contains(got.err, "secret") {
				t.Errorf("exit code %d, %q; want %d, %q", got.code, got.err, test.code, test.want)
			}
		})
	}
}

func TestReadTokenRefusesTokenWithSpaces(t *testing.T) {
	server := serve(t, fakeSyncService{}, nil)
	for name, content := range map[string]string{
		"nothing": "", "blank": " \n", "two words": "a b", "two lines": "a\nb", "too long": strings.Repeat("a", 64<<10+1),
	} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := run(t, nil, "status", "--server", server, "--token-file", file); got.code != 2 || !strings.Contains(got.err, "does not hold one token") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTokenRequiresTLSExceptOnLoopback(t *testing.T) {
	for server, refused := range map[string]bool{
		"http://127.0.0.1:1": false, "http://localhost:1": false, "http://[::1]:1": false,
		"http://192.0.2.1:1": true, "http://entail.example": true, "http://127.0.0.1.example": true, "http://localhost.example": true,
	} {
		got := run(t, map[string]string{"ENTAIL_TOKEN": "secret"}, "status", "--timeout", "1ms", "--server", server)
		if is := strings.Contains(got.err, "without encryption"); is != refused || got.code == 0 {
			t.Errorf("%s: %+v", server, got)
		}
	}
}

func TestReadEveryPageStopsAtLimit(t *testing.T) {
	for name, args := range map[string][]string{
		"no address": {"status", "--server", "://"}, "no host": {"status", "--server", "http://"}, "another scheme": {"status", "--server", "ftp://host"},
	} {
		if got := run(t, nil, args...); got.code != 2 || !strings.Contains(got.err, "is not an http or https URL, such as http://127.0.0.1:18091") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestServerURLDefaultsToDocumentedPort(t *testing.T) {
	for command, want := range map[string]string{
		"status --help": "http://127.0.0.1:18091", "inferences --help": "http://127.0.0.1:18094", "model show --help": "http://127.0.0.1:18092",
	} {
		if got := run(t, nil, strings.Fields(command)...); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := run(t, map[string]string{"ENTAIL_SERVER": "http://other"}, "status", "--help"); !strings.Contains(got.out, `(default "http://other")`) {
		t.Errorf("with a variable: %q", got.out)
	}
}

func TestCompletionOffersKindsForFirstArgument(t *testing.T) {
	for args, want := range map[string]string{"trace ": "store/", "replay ": "authorizationmodel/", "trace": "rolebinding/\n", "replay": ":6\n"} {
		if got := run(t, nil, "__complete", strings.TrimSpace(args), ""); !strings.Contains(got.out, want) {
			t.Errorf("%s: %q", args, got.out)
		}
	}
	if got := run(t, nil, "__complete", "trace", "store/demo", ""); strings.Contains(got.out, "store/") {
		t.Errorf("a second argument is offered: %q", got.out)
	}
}

// failingWriter is a writer that always fails, like a full disk or a closed pipe.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPrintAnswerReportsWriteError(t *testing.T) {
	server := serve(t, fakeSyncService{trace: func(*syncv1.TraceObjectRequest) (*syncv1.TraceObjectResponse, error) { return demo(), nil }}, nil)
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}, {"status", "-o", "yaml"}, {"trace", "store/demo"}, {"deadletters", "show", "7"}} {
		var told strings.Builder
		code := command.Run(t.Context(), append(args, "--server", server), command.IOStreams{
			In: strings.NewReader(""), Out: failingWriter{}, Err: &told, Getenv: func(string) string { return "" },
		})
		if code != 1 || !strings.Contains(told.String(), "write answer: broken pipe") {
			t.Errorf("%v: exit code %d, %q", args, code, told.String())
		}
	}
}

func TestParseLetterIDRequiresNumber(t *testing.T) {
	server := serve(t, fakeSyncService{}, nil)
	for _, args := range [][]string{{"deadletters", "show"}, {"deadletters", "discard"}, {"replay"}} {
		for _, id := range []string{"0", "-1", "x", "1.5", "18446744073709551616"} {
			got := run(t, nil, append(append(args, "--server", server, "--"), id)...)
			if got.code != 2 || !strings.Contains(got.err, "is not the ID of a dead letter, see `entail deadletters list`") {
				t.Errorf("%v %s: %+v", args, id, got)
			}
		}
	}
}

func TestRefusalIsPrintedUnchanged(t *testing.T) {
	for code, want := range map[connect.Code]string{
		connect.CodeInternal: "the reason", connect.CodeUnimplemented: "this address does not serve the API", connect.CodeUnavailable: "is `entail up` running?", connect.CodeDeadlineExceeded: "--server names another server",
		connect.CodeUnauthenticated: "ENTAIL_TOKEN gives a token", connect.CodePermissionDenied: "--token-file",
	} {
		got := run(t, nil, "deadletters", "list", "--server", serve(t, startRefusingService(code), nil))
		if !strings.HasPrefix(got.err, "entail: the reason") || !strings.Contains(got.err, want) || strings.Contains(got.err, code.String()) {
			t.Errorf("%s: %q", code, got.err)
		}
	}
}
