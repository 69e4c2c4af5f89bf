package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func ruleResource() event.GroupResource { return kinds.ImpliedRoles().GroupResource }

// generatedVersions returns the versions of the generated bindings, by name.
func (w *queryEnv) generatedVersions() map[string]string {
	versions := map[string]string{}
	for _, b := range w.cfg.State.Bindings.All() {
		if b.Value.IsGenerated() {
			versions[b.Key.Name] = b.ResourceVersion
		}
	}
	return versions
}

// streamReader follows a stream.
type streamReader struct {
	*inferenceWatch
	rows   receivedRows
	types  string
	causes string
	token  string
}

func (w *queryEnv) reader(namespace, token string) (*streamReader, error) {
	r := &streamReader{rows: receivedRows{}}
	r.inferenceWatch = &inferenceWatch{server: w.Server, namespace: namespace, out: func(m *inferencev1.WatchInferencesResponse) error {
		r.rows.take(m)
		r.types += strings.TrimPrefix(m.GetType().String(), "TYPE_")[:1]
		for _, c := range m.GetCauses() {
			r.causes += c.GetName() + " "
		}
		if m.GetResumeToken() != "" {
			r.token = m.GetResumeToken()
		}
		return nil
	}}
	return r, r.resumeOrSendSnapshot(token)
}

// read receives the available messages without waiting for more.
func (r *streamReader) read(t *testing.T) error {
	t.Helper()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	return r.sendNextChanges(done)
}

func TestWatchSendsSnapshotThenChanges(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b b>c")
	w.do("other", "x>y")
	w.cfg.Changes.flushDirtyNamespaces()
	r, err := w.reader("", "")
	if err != nil || r.rows.String() != "other/x: y; team/a: b c; team/b: c" || r.types != "SS" {
		t.Fatalf("begins with %s (%s), %v", r.rows, r.types, err)
	}
	w.do("team", "-b>c c>d B=a{x}")
	w.cfg.Changes.flushDirtyNamespaces()
	if err := r.read(t); err != nil || r.rows.String() != "other/x: y; team/a: b; team/c: d" || r.causes != "b>c c>d " {
		t.Errorf("after a change %s, because of %s, %v", r.rows, r.causes, err)
	}
	only, err := w.reader("other", "")
	if err != nil || only.rows.String() != "other/x: y" {
		t.Errorf("one namespace: got %s, %v", only.rows, err)
	}
	w.do("team", "-a>b")
	w.cfg.Changes.flushDirtyNamespaces()
	if err := only.read(t); err != nil || only.types != "SS" {
		t.Errorf("change in another namespace: got messages %s, %v", only.types, err)
	}
}

func TestWatchResumesWithoutGap(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b")
	w.cfg.Changes.flushDirtyNamespaces()
	r, err := w.reader("", "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		// Some changes come while the reader is connected, some while it is not.
		w.do("team", fmt.Sprintf("r%d>s b>c%d", i, i))
		w.cfg.Changes.flushDirtyNamespaces()
		if i%3 == 0 {
			if err := r.read(t); err != nil {
				t.Fatal(err)
			}
		}
		if i%4 == 0 {
			rows := r.rows
			if r, err = w.reader("", r.token); err != nil {
				t.Fatal(err)
			}
			r.rows = rows
		}
		w.do("team", fmt.Sprintf("-r%d>s", i-2))
		w.cfg.Changes.flushDirtyNamespaces()
	}
	if err := r.read(t); err != nil {
		t.Fatal(err)
	}
	fresh, err := w.reader("", "")
	if err != nil || r.rows.String() != fresh.rows.String() {
		t.Errorf("it has %s; there is %s, %v", r.rows, fresh.rows, err)
	}
}

func TestWatchRefusesInvalidResumeToken(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b")
	w.cfg.Changes.flushDirtyNamespaces()
	for i := range maxLog + 2 {
		w.do("team", fmt.Sprintf("x>%d -x>%d", i, i-1))
		w.cfg.Changes.flushDirtyNamespaces()
	}
	for token, want := range map[string]error{
		"here.0": errTooOld, "elsewhere.1": errTooOld, "here.999999": errTooOld, "here": errNoToken, "here.x": errNoToken, "here.": errNoToken,
		"here.4000": nil,
	} {
		r, err := w.reader("", token)
		if err == nil {
			err = r.read(t)
		}
		if err != want {
			t.Errorf("%s: %v, want %v", token, err, want)
		}
	}
}

func TestWatchWaitsForChangesAndEndsWithService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQueryEnv(t)
		w.incomplete.Store(true)
		w.do("team", "a>b")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.cfg.Changes.Run(ctx) }()
		synctest.Wait()
		if _, err := w.reader("", ""); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("of an incomplete view: %v", err)
		}
		w.incomplete.Store(false)
		<-time.After(2 * recheck)
		synctest.Wait()
		r, err := w.reader("", "")
		if err != nil {
			t.Fatal(err)
		}
		followed := make(chan error, 1)
		follow := func() { followed <- r.sendNextChanges(t.Context()) }
		go follow()
		synctest.Wait()
		w.do("team", "b>c")
		if err := <-followed; err != nil {
			t.Fatal(err)
		}
		go follow()
		if err := <-followed; err != nil || r.rows.String() != "team/a: b c; team/b: c" || r.types != "SSCB" {
			t.Errorf("got messages %s, rows %s, %v", r.types, r.rows, err)
		}
		go follow()
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := <-followed; err != nil {
			t.Error(err)
		}
		if err := r.sendNextChanges(t.Context()); err != errEnded {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestWatchCacheComparesAfterReload(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b")
	w.do("other", "x>y")
	w.cfg.Changes.flushDirtyNamespaces()
	r, err := w.reader("", "")
	if err != nil {
		t.Fatal(err)
	}
	w.do("team", "-a>b")
	w.cfg.Changes.mu.Lock()
	w.cfg.Changes.dirty = map[string]struct{}{} // As if the mark had been lost.
	w.cfg.Changes.mu.Unlock()
	w.cfg.Changes.MarkAllChanged()
	w.cfg.Changes.flushDirtyNamespaces()
	if err := r.read(t); err != nil || r.rows.String() != "other/x: y" {
		t.Errorf("it has %s, %v", r.rows, err)
	}
}
