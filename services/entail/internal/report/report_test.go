package report_test

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

// noon returns the time of all observations in these tests, plus later. The reports are made ten seconds after noon.
func noon(later time.Duration) *timestamppb.Timestamp {
	return timestamppb.New(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).Add(later))
}

func write(t *testing.T, f func(report.Printer)) string {
	t.Helper()
	return writeOn(t, report.Printer{Now: noon(10 * time.Second).AsTime()}, f)
}

func writeOn(t *testing.T, p report.Printer, f func(report.Printer)) string {
	t.Helper()
	var out bytes.Buffer
	p.Out = bufio.NewWriter(&out)
	f(p)
	if err := p.Out.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func expectEqual(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.TrimPrefix(want, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func demo() *eventv1.ObjectRef {
	return &eventv1.ObjectRef{Cluster: "local", Group: "core.platform-mesh.io", Resource: "stores", Name: "demo"}
}

func step(service string, outcome eventv1.Outcome, finished time.Duration) *syncv1.Step {
	return &syncv1.Step{Current: true, Result: &eventv1.ResourceResult{
		Service: service, Generation: 2, ResourceVersion: "345", Outcome: outcome, ObservedAt: noon(0), FinishedAt: noon(finished),
	}}
}

func traced(steps ...*syncv1.Step) *syncv1.TraceObjectResponse {
	return &syncv1.TraceObjectResponse{
		Ref: demo(), Generation: 2, ResourceVersion: "345", Operation: eventv1.Operation_OPERATION_UPSERT,
		ObservedAt: noon(0), PublishedAt: noon(2 * time.Millisecond), Sequence: 17, Steps: steps,
	}
}

func TestWriteObjectTraceSortsByTime(t *testing.T) {
	late := step("tuple-sync", eventv1.Outcome_OUTCOME_APPLIED, 28*time.Millisecond)
	early := step("store-sync", eventv1.Outcome_OUTCOME_APPLIED, 17*time.Millisecond)
	early.Result.Writes = 2
	got := write(t, func(p report.Printer) { p.WriteObjectTrace(traced(late, early)) })
	expectEqual(t, got, `
stores.core.platform-mesh.io/demo, generation 2
TIME           AFTER    STEP
12:00:00.000            observed as resource version 345
12:00:00.002   +2 ms    published as sequence 17
12:00:00.017   +17 ms   applied by store-sync, 2 writes
12:00:00.028   +28 ms   applied by tuple-sync, nothing to write
`)
}

func TestWriteObjectTraceListsEarlierStates(t *testing.T) {
	earlier := func(service string, finished time.Duration) *syncv1.Step {
		s := step(service, eventv1.Outcome_OUTCOME_APPLIED, finished)
		s.Result.ObservedAt, s.Result.ResourceVersion = noon(-90*time.Millisecond), "341"
		return s
	}
	got := write(t, func(p report.Printer) {
		p.WriteObjectTrace(traced(earlier("store-sync", -73*time.Millisecond), earlier("tuple-sync", 5*time.Millisecond)))
	})
	expectEqual(t, got, `
stores.core.platform-mesh.io/demo, generation 2
TIME           AFTER    STEP
11:59:59.910            observed as resource version 341
11:59:59.927   +17 ms   applied by store-sync, nothing to write
12:00:00.000            observed as resource version 345
12:00:00.002   +2 ms    published as sequence 17
12:00:00.005   +95 ms   applied by tuple-sync, nothing to write
`)
}

func TestWriteObjectTraceListsResultsOfServices(t *testing.T) {
	tests := map[string]struct {
		step *syncv1.Step
		want string
	}{
		"a rejection has its reason": {
			step: func() *syncv1.Step {
				s := step("store-sync", eventv1.Outcome_OUTCOME_REJECTED, time.Second)
				s.Result.Message = "line 3: unknown type"
				return s
			}(),
			want: "12:00:01.000   +1000 ms   rejected by store-sync: line 3: unknown type",
		},
		"a dead letter": {
			step: step("store-sync", eventv1.Outcome_OUTCOME_DEAD_LETTERED, time.Minute),
			want: "12:01:00.000   +60 s   given up by store-sync",
		},
		"a service that has yet to answer": {
			step: &syncv1.Step{Result: &eventv1.ResourceResult{Service: "store-sync"}},
			want: "waiting for store-sync",
		},
		"a service that knows only an earlier state": {
			step: func() *syncv1.Step {
				s := step("store-sync", eventv1.Outcome_OUTCOME_APPLIED, -2*time.Second)
				s.Current, s.Result.Generation = false, 1
				return s
			}(),
			want: "waiting for store-sync; generation 1 was applied by store-sync, nothing to write, 12 s ago",
		},
		"control characters of a message do no harm": {
			step: func() *syncv1.Step {
				s := step("store-sync", eventv1.Outcome_OUTCOME_PENDING, 3*time.Millisecond)
				s.Result.Message = "a\x1b[2J\nb\u009bc"
				return s
			}(),
			want: "12:00:00.003   +3 ms   pending in store-sync: a [2J b c",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := write(t, func(p report.Printer) { p.WriteObjectTrace(traced(test.step)) })
			lines := strings.Split(strings.TrimSpace(got), "\n")
			if last := strings.Join(strings.Fields(lines[len(lines)-1]), " "); last != strings.Join(strings.Fields(test.want), " ") {
				t.Errorf("got %q, want %q", last, test.want)
			}
		})
	}
}

func TestWriteObjectTraceReportsDeletion(t *testing.T) {
	m := traced()
	m.Operation = eventv1.Operation_OPERATION_DELETE
	got := write(t, func(p report.Printer) { p.WriteObjectTrace(m) })
	if first, _, _ := strings.Cut(got, "\n"); !strings.HasSuffix(first, ", deleted") {
		t.Errorf("got %q", first)
	}
}

func TestWriteObjectTraceColorsLastCellOnly(t *testing.T) {
	m := traced(step("store-sync", eventv1.Outcome_OUTCOME_APPLIED, time.Millisecond))
	trace := func(p report.Printer) { p.WriteObjectTrace(m) }
	plain := writeOn(t, report.Printer{Now: noon(0).AsTime()}, trace)
	colored := writeOn(t, report.Printer{Now: noon(0).AsTime(), Color: true}, trace)
	stripped := strings.NewReplacer("\x1b[32m", "", "\x1b[0m", "").Replace(colored)
	if stripped != plain || stripped == colored {
		t.Errorf("got %q, without color %q", colored, plain)
	}
}

func TestWriteServiceStatusListsServicesThenSnapshots(t *testing.T) {
	marker := func(resource string, served bool) *eventv1.SnapshotMarker {
		return &eventv1.SnapshotMarker{
			Cluster: "local", Group: "core.platform-mesh.io", Resource: resource, Count: 3, Served: served, WrittenAt: noon(5 * time.Second),
		}
	}
	got := write(t, func(p report.Printer) {
		p.WriteServiceStatus(&syncv1.GetStatusResponse{
			Services: []*syncv1.Service{
				{Name: "store-sync", Pending: 1, InFlight: 2, Redelivered: 3, LastAckAt: noon(8 * time.Second)},
				{Name: "tuple-sync", DeadLetters: 4},
			},
			Snapshots: []*syncv1.Snapshot{
				{Marker: marker("stores", true), Current: true},
				{Marker: marker("authorizationmodels", false), Current: true},
				{Marker: marker("others", true)},
			},
			Objects: 1, LastSequence: 48, DeadLetters: 4,
		})
	})
	expectEqual(t, got, `
SERVICE      PENDING   IN FLIGHT   REDELIVERED   LAST ACK   DEAD LETTERS
store-sync   1         2           3             2 s ago    0
tuple-sync   0         0           0             never      4

RESOURCE                                    CLUSTER   SWEPT     FOUND   STATE
stores.core.platform-mesh.io                local     5 s ago   3       complete
authorizationmodels.core.platform-mesh.io   local     5 s ago   3       not served
others.core.platform-mesh.io                local     5 s ago   3       incomplete

1 object on the bus, last sequence 48, 4 dead letters
`)
}

func letter() *syncv1.DeadLetter {
	return &syncv1.DeadLetter{
		Id: 7, Service: "store-sync", Subject: "entail.changes.x", Ref: demo(), Reason: strings.Repeat("because ", 20),
		ParkedAt: noon(-26 * time.Hour), OriginalSequence: 12,
	}
}

func TestDeadLettersListShortensReasons(t *testing.T) {
	unnamed := &syncv1.DeadLetter{Id: 6, Service: "tuple-sync", Reason: "no object", ParkedAt: noon(0)}
	got := write(t, func(p report.Printer) { p.WriteDeadLetters([]*syncv1.DeadLetter{letter(), unnamed}) })
	expectEqual(t, got, `
ID   SERVICE      OBJECT                              PARKED     REASON
7    store-sync   stores.core.platform-mesh.io/demo   26 h ago   `+strings.Repeat("because ", 12)+`bec…
6    tuple-sync   -                                   10 s ago   no object
`)
	if got := write(t, func(p report.Printer) { p.WriteDeadLetters(nil) }); got != "no dead letters\n" {
		t.Errorf("an empty list is %q", got)
	}
}

func TestDeadLetterShowsItsMessage(t *testing.T) {
	decoded := write(t, func(p report.Printer) {
		p.WriteDeadLetter(&syncv1.GetDeadLetterResponse{DeadLetter: letter(), ChangeJson: `{"uid":"1"}`})
	})
	expectEqual(t, decoded, `
id        7
service   store-sync
object    stores.core.platform-mesh.io/demo
subject   entail.changes.x
sequence  12
parked    2026-05-03 10:00:00.000 (26 h ago)
reason    `+strings.Repeat("because ", 20)+`
message
{
  "uid": "1"
}
`)
	raw := write(t, func(p report.Printer) {
		p.WriteDeadLetter(&syncv1.GetDeadLetterResponse{DeadLetter: letter(), Data: []byte{0xff, 'a'}})
	})
	if want := `message   2 bytes that do not decode: "\xffa"` + "\n"; !strings.HasSuffix(raw, want) {
		t.Errorf("got %q, want the end %q", raw, want)
	}
}

func TestWriteMessageIsStable(t *testing.T) {
	m := &syncv1.ReplayResponse{Ref: demo(), Sequence: 9}
	tests := map[report.Format]string{
		report.JSON: `
{
  "ref": {
    "cluster": "local",
    "group": "core.platform-mesh.io",
    "resource": "stores",
    "namespace": "",
    "name": "demo"
  },
  "sequence": "9"
}
`,
		report.YAML: `
ref:
  cluster: local
  group: core.platform-mesh.io
  name: demo
  namespace: ""
  resource: stores
sequence: "9"
`,
	}
	for format, want := range tests {
		t.Run(string(format), func(t *testing.T) {
			var out bytes.Buffer
			if err := report.WriteMessage(&out, format, m); err != nil {
				t.Fatal(err)
			}
			expectEqual(t, out.String(), want)
		})
	}
}

func TestFormatRefusesUnknownValue(t *testing.T) {
	format := report.Table
	if err := format.Set("xml"); err == nil || format != report.Table {
		t.Errorf("xml: error %v, format %s", err, format)
	}
	if err := format.Set("yaml"); err != nil || format != report.YAML {
		t.Errorf("yaml: error %v, format %s", err, format)
	}
}
