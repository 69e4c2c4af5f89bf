package report_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func TestAgoTextUsesLargestUnit(t *testing.T) {
	for want, ago := range map[string]time.Duration{
		"0 ms ago": -time.Second, "250 ms ago": 250 * time.Millisecond, "59 s ago": 59 * time.Second, "119 s ago": 119 * time.Second,
		"2 min ago": 2 * time.Minute, "119 min ago": 119 * time.Minute, "2 h ago": 2 * time.Hour, "47 h ago": 47 * time.Hour, "2 d ago": 48 * time.Hour, "30 d ago": 30 * 24 * time.Hour,
	} {
		got := write(t, func(p report.Printer) {
			p.WriteDeadLetters([]*syncv1.DeadLetter{{Id: 1, Service: "s", Reason: "r", ParkedAt: noon(10*time.Second - ago)}})
		})
		if !strings.Contains(got, "   "+want+"   ") {
			t.Errorf("%s: %q", want, got)
		}
	}
}

func TestClockTextOfNilIsEmpty(t *testing.T) {
	got := write(t, func(p report.Printer) {
		p.WriteServiceStatus(&syncv1.GetStatusResponse{Services: []*syncv1.Service{{Name: "store-sync"}}})
	})
	if !strings.Contains(got, "store-sync   0         0           0             never      0") {
		t.Errorf("got %q", got)
	}
	m := traced()
	m.ObservedAt, m.PublishedAt = nil, nil
	if got := write(t, func(p report.Printer) { p.WriteObjectTrace(m) }); strings.Contains(got, "1970") || strings.Contains(got, "ms") {
		t.Errorf("got %q", got)
	}
}

func TestDurationBetweenUsesLargestUnit(t *testing.T) {
	late := step("store-sync", eventv1.Outcome_OUTCOME_APPLIED, 3*time.Minute)
	if got := write(t, func(p report.Printer) { p.WriteObjectTrace(traced(late)) }); !strings.Contains(got, "+3 min") {
		t.Errorf("got %q", got)
	}
}

func TestOutcomeTextCoversEveryOutcome(t *testing.T) {
	for outcome, want := range map[eventv1.Outcome]string{
		eventv1.Outcome_OUTCOME_APPLIED: "applied by s, nothing to write", eventv1.Outcome_OUTCOME_REJECTED: "rejected by s",
		eventv1.Outcome_OUTCOME_PENDING: "pending in s", eventv1.Outcome_OUTCOME_RETRYING: "retried by s",
		eventv1.Outcome_OUTCOME_DEAD_LETTERED: "given up by s", eventv1.Outcome_OUTCOME_UNSPECIFIED: "seen by s",
	} {
		if got := write(t, func(p report.Printer) { p.WriteObjectTrace(traced(step("s", outcome, time.Millisecond))) }); !strings.Contains(got, want+"\n") {
			t.Errorf("%s: %q, want %q", outcome, got, want)
		}
	}
}

func TestWriteObjectTraceListsEarlierResultWhileWaiting(t *testing.T) {
	earlier := step("s", eventv1.Outcome_OUTCOME_REJECTED, 0)
	earlier.Current, earlier.Result.Generation = false, 1
	got := write(t, func(p report.Printer) {
		p.WriteObjectTrace(traced(earlier, &syncv1.Step{Result: &eventv1.ResourceResult{Service: "other"}}))
	})
	if !strings.Contains(got, "waiting for s; generation 1 was rejected by s, 10 s ago\n") || !strings.HasSuffix(got, "waiting for other\n") {
		t.Errorf("got %q", got)
	}
}

func TestReplayResumeAndDiscardPrintOneLine(t *testing.T) {
	namespaced := demo()
	namespaced.Group, namespaced.Namespace = "", "team-a"
	for want, f := range map[string]func(report.Printer){
		"stores.core.platform-mesh.io/demo published again as sequence 9\n": func(p report.Printer) { p.WriteReplayResult(&syncv1.ReplayResponse{Ref: demo(), Sequence: 9}) },
		"stores/team-a/demo published again as sequence 9\n":                func(p report.Printer) { p.WriteReplayResult(&syncv1.ReplayResponse{Ref: namespaced, Sequence: 9}) },
		"dead letter 7 of store-sync discarded\n":                           func(p report.Printer) { p.WriteDiscardResult(&syncv1.DiscardDeadLetterResponse{DeadLetter: letter()}) },
		"dead letter 7 of store-sync discarded; message 12 was no change, and has left the bus\n": func(p report.Printer) {
			p.WriteDiscardResult(&syncv1.DiscardDeadLetterResponse{DeadLetter: letter(), MessageRemoved: true})
		},
	} {
		expectEqual(t, write(t, f), want)
	}
}

func TestSanitizeTextRemovesControlCharacters(t *testing.T) {
	evil := "a\x1b[2Jb\rc\td\ne\u202ef\u200bg\u2028h"
	for name, f := range map[string]func(report.Printer){
		"a reason": func(p report.Printer) { p.WriteDeadLetters([]*syncv1.DeadLetter{{Id: 1, Service: evil, Reason: evil}}) },
		"a letter": func(p report.Printer) {
			p.WriteDeadLetter(&syncv1.GetDeadLetterResponse{DeadLetter: &syncv1.DeadLetter{Reason: evil}, ChangeJson: evil})
		},
		"a role": func(p report.Printer) {
			p.WriteInferences(&inferencev1.ListInferencesResponse{Inferences: []*inferencev1.Inference{{Namespace: evil}}})
		},
		"a model": func(p report.Printer) {
			p.WriteModel(&storev1.GetModelResponse{Dsl: strings.ReplaceAll(evil, "\n", "")})
		},
		"a preview": func(p report.Printer) { p.WriteModelPreview(&storev1.PreviewModelResponse{Message: evil}) },
	} {
		if got := write(t, f); strings.ContainsAny(got, "\x1b\r\t\u202e\u200b\u2028") || strings.Contains(got, "d\ne") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWriteDeadLetterPrintsNonJSONUnchanged(t *testing.T) {
	got := write(t, func(p report.Printer) {
		p.WriteDeadLetter(&syncv1.GetDeadLetterResponse{DeadLetter: letter(), ChangeJson: "{no"})
	})
	if !strings.HasSuffix(got, "message\n{no\n") {
		t.Errorf("got %q", got)
	}
}

func TestWriteModelPreviewListsOtherModules(t *testing.T) {
	m := &storev1.PreviewModelResponse{Accepted: true, Message: "with a warning", Modules: []*storev1.Module{
		{Source: "a", State: "Merged"}, {Source: "b", State: "Rejected", Message: "type x is defined twice"},
	}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteModelPreview(m) }), `
Accepted: with a warning
b would be rejected: type x is defined twice
The models mean the same.
`)
}

func TestBindingStateColors(t *testing.T) {
	for state, ink := range map[inferencev1.BindingState]string{
		inferencev1.BindingState_BINDING_STATE_SYNCED: "\x1b[32m", inferencev1.BindingState_BINDING_STATE_PENDING: "\x1b[33m",
		inferencev1.BindingState_BINDING_STATE_CONFLICT: "\x1b[31m", inferencev1.BindingState_BINDING_STATE_UNSPECIFIED: "",
	} {
		got := writeOn(t, report.Printer{Color: true}, func(p report.Printer) {
			p.WriteBindingExplanation(&inferencev1.ExplainBindingResponse{Name: "b", Implied: []*inferencev1.ImpliedBinding{{State: state, Name: "x"}}})
		})
		if strings.Contains(got, "\x1b[") != (ink != "") || !strings.Contains(got, ink) {
			t.Errorf("%s: %q", state, got)
		}
	}
}

func TestFormatFlagListsValues(t *testing.T) {
	format := report.Table
	cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	format.BindFlag(cmd)
	cmd.SetArgs([]string{"-o", "yaml"})
	if err := cmd.Execute(); err != nil || format != report.YAML {
		t.Errorf("format is %s, %v", format, err)
	}
	if usage := cmd.Flags().FlagUsages(); !strings.Contains(usage, "--output FORMAT") || !strings.Contains(usage, "table, json or yaml") {
		t.Errorf("usage is %q", usage)
	}
	complete, ok := cmd.GetFlagCompletionFunc("output")
	if !ok {
		t.Fatal("nothing completes the flag")
	}
	if offered, _ := complete(cmd, nil, ""); len(offered) != 3 {
		t.Errorf("offered are %v", offered)
	}
}

// fullDiskWriter is a writer that always fails, like a full disk.
type fullDiskWriter struct{}

func (fullDiskWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteDocumentReportsInvalidJSON(t *testing.T) {
	for name, test := range map[string]struct {
		format   report.Format
		document string
		want     string
	}{
		"no room for JSON": {report.JSON, "{}", "write answer: no space left"},
		"no room for YAML": {report.YAML, "{}", "write answer: no space left"},
		"no JSON":          {report.JSON, "{", "indent answer"},
		"no YAML":          {report.YAML, "{", "convert answer to YAML"},
	} {
		if err := report.WriteDocument(fullDiskWriter{}, test.format, []byte(test.document)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var out bytes.Buffer
	if err := report.WriteMessage(&out, report.JSON, &syncv1.GetStatusResponse{}); err != nil || !strings.Contains(out.String(), `"objects": "0"`) {
		t.Errorf("a field without a value is left out: %s, %v", out.String(), err)
	}
}
