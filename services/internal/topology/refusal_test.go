package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func TestClassifyRefusalMarksPermanentErrorsTerminal(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		terminal bool
		text     string
	}{
		"a configuration that cannot be":  {&jetstream.APIError{ErrorCode: invalidConfig, Description: "bad"}, true, "bad"},
		"another stream has the subjects": {&jetstream.APIError{ErrorCode: subjectsOverlap, Description: "overlap"}, true, "overlap"},
		"too few servers":                 {&jetstream.APIError{ErrorCode: replicasImpossible, Description: "replicas"}, true, "use --stream-replicas=1 or a cluster of NATS servers"},
		"no room":                         {&jetstream.APIError{ErrorCode: 10047, Description: "insufficient storage"}, false, "insufficient storage"},
		"no answer":                       {nats.ErrTimeout, false, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			err := classifyRefusal(fmt.Errorf("restore stream: %w", test.err))
			if fault.IsTerminal(err) != test.terminal || !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("terminal %t: %v", fault.IsTerminal(err), err)
			}
		})
	}
}

func TestStreamDifferenceString(t *testing.T) {
	for want, d := range map[string]StreamDifference{
		"stream A is missing":                      {Stream: "A", Missing: true},
		"stream A differs in MaxMsgs, AllowDirect": {Stream: "A", Fields: []string{"MaxMsgs", "AllowDirect"}},
	} {
		if d.String() != want || !d.NeedsRepair() {
			t.Errorf("it says %q, wrong %t; want %q", d, d.NeedsRepair(), want)
		}
	}
	if more := (StreamDifference{Stream: "A", Replicas: 3}); more.NeedsRepair() {
		t.Error("more copies than were asked for are said to be wrong")
	}
}

func TestServiceSubjectsAreDistinct(t *testing.T) {
	owners := map[string]string{}
	for _, service := range append(DurableServices(), Service{Name: Watcher}) {
		for _, subject := range []string{ResyncSubject(service.Name), EndMarkSubject(service.Name), ProbeSubject(service.Name), LeaseSubject(service.Name), InboxPrefix(service.Name)} {
			if other := owners[subject]; other != "" {
				t.Errorf("%s is of %s and of %s", subject, other, service.Name)
			}
			owners[subject] = service.Name
			if strings.HasPrefix(subject, wakePrefix) != IsServiceSubject(subject) {
				t.Errorf("%s is told for a wake: %t", subject, IsServiceSubject(subject))
			}
		}
	}
	if IsServiceSubject(ChangeSubject(event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "wake"})) {
		t.Error("a change is told for a wake")
	}
}

func TestFindServiceFindsService(t *testing.T) {
	for _, service := range DurableServices() {
		if found, ok := FindService(service.Name); !ok || !slices.Equal(found.Kinds, service.Kinds) {
			t.Errorf("%s: %+v, %t", service.Name, found, ok)
		}
	}
	if found, ok := FindService("nobody"); ok {
		t.Errorf("found %+v", found)
	}
}

// message is a message on a subject.
type message struct {
	jetstream.Msg
	subject string
	data    []byte
	header  nats.Header
}

func (m message) Subject() string      { return m.subject }
func (m message) Data() []byte         { return m.data }
func (m message) Headers() nats.Header { return m.header }
func (message) Metadata() (*jetstream.MsgMetadata, error) {
	return nil, jetstream.ErrNotJSMessage
}

func TestDecodeChangeRefusesInconsistentMessage(t *testing.T) {
	stored := func(edit func(*event.Change)) event.Change {
		c := event.Change{
			Key: event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "demo"}, UID: "u1", ResourceVersion: "5", Epoch: "e",
			Object: []byte(`{"metadata":{"name":"demo","uid":"u1","resourceVersion":"5"},"Metadata":{"name":"other"}}`),
		}
		edit(&c)
		return c
	}
	metadata := func(of string) func(*event.Change) {
		return func(c *event.Change) { c.Object = []byte(`{"metadata":` + of + `}`) }
	}
	change := stored(func(*event.Change) {})
	deleted := stored(func(c *event.Change) { c.Deleted, c.ResourceVersion = true, "7" })
	other := stored(func(c *event.Change) { c.Key.Name, c.Object = "other", nil })
	secret := stored(func(c *event.Change) { c.Key.GroupResource, c.ResourceVersion = kinds.Secrets().GroupResource, "9" })
	for name, test := range map[string]struct {
		subject string
		change  event.Change
		header  nats.Header
		data    string
		want    string
	}{
		"a change":                    {change: change},
		"a deletion":                  {change: deleted},
		"a tombstone":                 {change: deleted, subject: TombstoneSubject(change.Key, "u1")},
		"a Secret":                    {change: secret},
		"no subject of changes":       {change: change, subject: "entail.results.x", want: "is not a subject of changes"},
		"a subject of no object":      {change: change, subject: "entail.changes.local", want: "subject"},
		"no change":                   {change: change, data: "x", want: "decode change"},
		"a change of another object":  {change: other, subject: ChangeSubject(change.Key), want: "speaks of"},
		"a tombstone of another UID":  {change: deleted, subject: TombstoneSubject(change.Key, "u2"), want: "the tombstone of UID u2"},
		"a tombstone of what lives":   {change: change, subject: TombstoneSubject(change.Key, "u1"), want: "deleted is false"},
		"a tombstone without its UID": {change: deleted, subject: ChangeSubject(change.Key) + "._", want: "subject"},
		"no headers":                  {change: change, header: nats.Header{}, want: "header Entail-"},
		"another epoch":               {change: change, header: ChangeHeaders(stored(func(c *event.Change) { c.Epoch = "f" })), want: "header Entail-Epoch"},
		"another UID":                 {change: change, header: ChangeHeaders(stored(func(c *event.Change) { c.UID = "u2" })), want: "header Entail-Uid"},
		"another version":             {change: change, header: ChangeHeaders(stored(func(c *event.Change) { c.ResourceVersion = "99999" })), want: "header Entail-Resource-Version"},
		"another operation":           {change: change, header: ChangeHeaders(stored(func(c *event.Change) { c.Deleted = true })), want: "header Entail-Operation"},
		"another name within":         {change: stored(metadata(`{"name":"x"}`)), want: "metadata.name"},
		"a namespace within":          {change: stored(metadata(`{"namespace":"x"}`)), want: "metadata.namespace"},
		"another UID within":          {change: stored(metadata(`{"uid":"u2"}`)), want: "metadata.uid"},
		"another version within":      {change: stored(metadata(`{"resourceVersion":"6"}`)), want: "metadata.resourceVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := test.change.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			msg := message{subject: cmp.Or(test.subject, ChangeSubject(test.change.Key)), data: data, header: test.header}
			if msg.header == nil {
				msg.header = ChangeHeaders(test.change)
			}
			if test.data != "" {
				msg.data = []byte(test.data)
			}
			got, err := DecodeChange(msg)
			switch {
			case test.want == "" && (err != nil || got.UID != "u1" || !got.ExpiresAt.IsZero()):
				t.Errorf("got %+v, %v", got, err)
			case test.want != "" && (!fault.IsTerminal(err) || !errors.Is(err, ErrInvalidChange) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
