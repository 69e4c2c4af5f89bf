package topology

import (
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

func TestARefusalThatNoTimeCuresNeedsAPerson(t *testing.T) {
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

func TestADifferenceSaysWhatItIs(t *testing.T) {
	for want, d := range map[string]Difference{
		"stream A is missing":                      {Stream: "A", Missing: true},
		"stream A differs in MaxMsgs, AllowDirect": {Stream: "A", Fields: []string{"MaxMsgs", "AllowDirect"}},
	} {
		if d.String() != want || !d.NeedsRestore() {
			t.Errorf("it says %q, wrong %t; want %q", d, d.NeedsRestore(), want)
		}
	}
	if more := (Difference{Stream: "A", Copies: 3}); more.NeedsRestore() {
		t.Error("more copies than were asked for are said to be wrong")
	}
}

func TestNoTwoServicesShareASubject(t *testing.T) {
	owners := map[string]string{}
	for _, service := range append(Services(), Service{Name: Watcher}) {
		for _, subject := range []string{WakeSubject(service.Name), BarrierSubject(service.Name), TurnSubject(service.Name), InboxPrefix(service.Name)} {
			if other := owners[subject]; other != "" {
				t.Errorf("%s is of %s and of %s", subject, other, service.Name)
			}
			owners[subject] = service.Name
			if strings.HasPrefix(subject, wakePrefix) != IsWake(subject) {
				t.Errorf("%s is told for a wake: %t", subject, IsWake(subject))
			}
		}
	}
	if IsWake(ChangeSubject(event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "wake"})) {
		t.Error("a change is told for a wake")
	}
}

func TestAServiceIsFoundByItsName(t *testing.T) {
	for _, service := range Services() {
		if found, ok := ServiceNamed(service.Name); !ok || !slices.Equal(found.Kinds, service.Kinds) {
			t.Errorf("%s: %+v, %t", service.Name, found, ok)
		}
	}
	if found, ok := ServiceNamed("nobody"); ok {
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

func TestAMessageThatIsNoChangeOfItsSubjectWillNeverBeOne(t *testing.T) {
	change := event.Change{
		Key: event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: "demo"}, UID: "u1", ResourceVersion: "5",
	}
	wire := func(c event.Change) []byte {
		t.Helper()
		data, err := c.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	deleted, other := change, change
	deleted.Deleted, other.Key.Name = true, "other"
	for name, test := range map[string]struct {
		subject string
		data    []byte
		want    string
	}{
		"a change":                    {ChangeSubject(change.Key), wire(change), ""},
		"a tombstone":                 {TombstoneSubject(change.Key, "u1"), wire(deleted), ""},
		"no subject of changes":       {"entail.results.x", wire(change), "is not one of changes"},
		"a subject of no object":      {"entail.changes.local", wire(change), "subject"},
		"no change":                   {ChangeSubject(change.Key), []byte("x"), "decode change"},
		"a change of another object":  {ChangeSubject(change.Key), wire(other), "speaks of"},
		"a tombstone of another UID":  {TombstoneSubject(change.Key, "u2"), wire(deleted), "the tombstone of UID u2"},
		"a tombstone of what lives":   {TombstoneSubject(change.Key, "u1"), wire(change), "deleted is false"},
		"a tombstone without its UID": {ChangeSubject(change.Key) + "._", wire(deleted), "subject"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeChange(message{subject: test.subject, data: test.data})
			switch {
			case test.want == "" && (err != nil || got.UID != "u1" || !got.ExpiresAt.IsZero()):
				t.Errorf("got %+v, %v", got, err)
			case test.want != "" && (!fault.IsTerminal(err) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
