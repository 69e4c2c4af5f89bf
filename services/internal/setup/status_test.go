package setup_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
)

// fakeStatusAPI is a fake API server with one object. It refuses each write with err.
type fakeStatusAPI struct {
	is    event.Change
	err   error
	calls []string
}

func (o *fakeStatusAPI) ApplyStatus(_ context.Context, _ kinds.Kind, obj event.Change, status any) (event.Change, error) {
	o.calls = append(o.calls, fmt.Sprint("status ", status))
	if o.err == nil && obj.ResourceVersion != o.is.ResourceVersion {
		return event.Change{}, kube.ErrConflict
	}
	now := o.is
	now.ResourceVersion = "9"
	return now, o.err
}

func (o *fakeStatusAPI) ReadNewest(context.Context, kinds.Kind, event.Change) (event.Change, error) {
	return o.is, nil
}

func (o *fakeStatusAPI) RecordEvent(_ context.Context, _ event.Change, note condition.EventContent) error {
	o.calls = append(o.calls, "note "+note.Reason)
	return errors.New("too many")
}

func TestStatusWriterWritesToObservedState(t *testing.T) {
	about := event.Change{
		Key: event.Key{GroupResource: kinds.Stores().GroupResource, Name: "a"}, UID: "u", ResourceVersion: "3", Object: []byte("{}"), Traceparent: "trace",
	}
	newer, older := about, about
	newer.ResourceVersion, older.ResourceVersion = "5", "2"
	refusal := errors.New("too large")
	for name, c := range map[string]struct {
		same  bool
		is    event.Change
		err   error
		want  error
		view  string // the version that the informer holds after that
		calls string
		told  int
	}{
		"written":             {is: about, view: "9", calls: "[status ours note Told]", told: 1},
		"there already":       {same: true, is: about, view: "3", calls: "[]", told: 1},
		"the object is newer": {is: newer, want: reconcile.ErrStale, view: "5", calls: "[status ours]"},
		"it never was so":     {is: older, want: reconcile.ErrStale, view: "2", calls: "[status ours]"},
		"the object is gone":  {err: kube.ErrNotFound, view: "3", calls: "[status ours]"},
		"refused":             {err: refusal, want: refusal, view: "3", calls: "[status ours]"},
	} {
		t.Run(name, func(t *testing.T) {
			v := informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)})
			table := informer.RegisterLister[struct{}](v, kinds.Stores(), nil)
			if err := v.Apply(t.Context(), about); err != nil {
				t.Fatal(err)
			}
			api := &fakeStatusAPI{is: c.is, err: c.err}
			pass := controller.NewRequest(v, "key", false)
			_, err := setup.NewStatusWriter(api, v, slog.New(slog.DiscardHandler)).Write(t.Context(), pass, setup.StatusUpdate{
				Kind: kinds.Stores(), Object: about, Fields: "ours", Unchanged: c.same,
				Outcome: eventv1.Outcome_OUTCOME_PENDING, Message: "waits", Events: []condition.EventContent{{Reason: "Told"}},
			})
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if o, _ := table.Get(about.Key); o.ResourceVersion != c.view || o.ResourceVersion == "9" && o.Traceparent != "trace" {
				t.Errorf("the view holds version %s of trace %q, want %s", o.ResourceVersion, o.Traceparent, c.view)
			}
			if got := fmt.Sprint(api.calls); got != c.calls {
				t.Errorf("calls %s, want %s", got, c.calls)
			}
			if got := pass.Results(); len(got) != c.told || c.told == 1 && (got[0].Message != "waits" || got[0].Writes == 0 != c.same) {
				t.Errorf("results %+v", got)
			}
		})
	}
}
