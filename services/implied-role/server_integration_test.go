//go:build integration

package impliedrole_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/testenv"
)

const seed = "admin>developer admin>reviewer developer>writer writer>pro writer>noob"

// client returns a client that repeats calls while the informer is incomplete, which can happen at any time.
func (b *testEnv) client(r *testenv.RunningService) inferencev1connect.InferenceServiceClient {
	b.T.Helper()
	patient := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, request connect.AnyRequest) (response connect.AnyResponse, err error) {
			for end := time.Now().Add(soon); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
				if response, err = next(ctx, request); connect.CodeOf(err) != connect.CodeUnavailable {
					break
				}
			}
			return response, err
		}
	})
	transport := &http.Transport{}
	b.T.Cleanup(transport.CloseIdleConnections)
	return inferencev1connect.NewInferenceServiceClient(&http.Client{Transport: transport}, r.URL, connect.WithInterceptors(patient))
}

func text(r *inferencev1.Role) string {
	return infer.Role{Name: r.GetName(), Cluster: r.GetKind() == infer.KindClusterRole}.String()
}

func row(i *inferencev1.Inference) string {
	var children []string
	for _, r := range i.GetChildRoles() {
		children = append(children, text(r))
	}
	return text(i.GetParent()) + ": " + strings.Join(children, " ")
}

// table waits until the rows of the namespace are as wanted.
func (b *testEnv) table(client inferencev1connect.InferenceServiceClient, want string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		response, err := client.ListInferences(b.T.Context(), &inferencev1.ListInferencesRequest{Namespace: b.namespace})
		if err != nil {
			return err
		}
		var rows []string
		for _, i := range response.GetInferences() {
			rows = append(rows, row(i))
		}
		if got := strings.Join(rows, "; "); got != want || response.GetRevision() == "" || !response.GetSynced() {
			return fmt.Errorf("rows %s, want %s", got, want)
		}
		return nil
	})
}

func TestWorkedExampleInStatusAndListInferences(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	client := b.client(b.serve())
	b.do(seed)
	b.table(client, "admin: developer noob pro reviewer writer; developer: noob pro writer; writer: noob pro")
	b.becomes("")
	statuses := func() map[string]string {
		all := map[string]string{}
		for _, r := range b.allRules() {
			all[r.Name] = fmt.Sprintf("%s: %s @%d", r.Status.Inferences.ParentRole, strings.Join(r.Status.Inferences.ChildRoles, " "), r.Status.ObservedGeneration)
		}
		return all
	}
	for name, want := range map[string]string{
		"admin.to.developer": "admin: developer noob pro reviewer writer @1", "admin.to.reviewer": "admin: developer noob pro reviewer writer @1",
		"developer.to.writer": "developer: noob pro writer @1", "writer.to.pro": "writer: noob pro @1", "writer.to.noob": "writer: noob pro @1",
	} {
		if got := statuses()[name]; got != want {
			t.Errorf("status of %s is %q, want %q", name, got, want)
		}
	}
	versions := map[string]string{}
	for _, r := range b.allRules() {
		versions[r.Name] = r.ResourceVersion
	}
	b.do("-developer>writer")
	b.table(client, "admin: developer reviewer; writer: noob pro")
	b.becomes("")
	b.AwaitNoCalls()
	for _, r := range b.allRules() {
		if changed := r.ResourceVersion != versions[r.Name]; changed != strings.HasPrefix(r.Name, "admin") || r.Generation != 1 {
			t.Errorf("%s was written: %v; generation %d", r.Name, changed, r.Generation)
		}
	}
}

// watchFollower keeps the rows of successive streams. Each stream resumes where the last one ended.
type watchFollower struct {
	*testEnv
	client inferencev1connect.InferenceServiceClient
	rows   map[string]string
	token  string
	// streams is the number of streams so far.
	streams int
}

// until follows the stream until the rows are as wanted, and then disconnects.
func (f *watchFollower) until(want string) error {
	f.T.Helper()
	end := time.Now().Add(soon)
	for {
		err := f.once(want)
		if err == nil || connect.CodeOf(err) != connect.CodeUnavailable || time.Now().After(end) {
			return err
		}
	}
}

func (f *watchFollower) once(want string) error {
	ctx, hangUp := context.WithCancel(f.T.Context())
	defer hangUp()
	stream, err := f.client.WatchInferences(ctx, &inferencev1.WatchInferencesRequest{Namespace: f.namespace, ResumeToken: f.token})
	if err != nil {
		return err
	}
	f.streams++
	for stream.Receive() {
		m := stream.Msg()
		for _, i := range m.GetUpserted() {
			f.rows[text(i.GetParent())] = row(i)
		}
		for _, k := range m.GetRemoved() {
			delete(f.rows, text(k.GetParent()))
		}
		if f.token = cmp.Or(m.GetResumeToken(), f.token); f.token == "" {
			continue
		}
		var rows []string
		for _, parent := range slices.Sorted(maps.Keys(f.rows)) {
			rows = append(rows, f.rows[parent])
		}
		if strings.Join(rows, "; ") == want {
			return nil
		}
	}
	return stream.Err()
}

func TestWatchResumesAfterDisconnectWithoutGap(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	running := b.serve()
	b.do("a>b b>c x>y")
	f := &watchFollower{testEnv: b, client: b.client(running), rows: map[string]string{}}
	b.table(f.client, "a: b c; b: c; x: y")
	if err := f.until("a: b c; b: c; x: y"); err != nil {
		t.Fatal(err)
	}
	before := f.streams
	b.do("-b>c c>d a>c -x>y")
	b.table(f.client, "a: b c d; c: d")
	if err := f.until("a: b c d; c: d"); err != nil || f.streams == before {
		t.Errorf("after a disconnect: %v, %v", f.rows, err)
	}
	running.Stop()
	f.client = b.client(b.serve())
	b.table(f.client, "a: b c d; c: d")
	if err := f.until("nothing"); connect.CodeOf(err) != connect.CodeOutOfRange {
		t.Errorf("token of another process: got %v", err)
	}
}
