package report

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
)

// WriteObjectTrace prints the progress of an object as a timeline: observed, published, applied by each service.
func (p Printer) WriteObjectTrace(m *syncv1.TraceObjectResponse) {
	fate := ""
	if m.GetOperation() == eventv1.Operation_OPERATION_DELETE {
		fate = ", deleted"
	}
	p.writeLinef("%s, generation %d%s", ObjectName(m.GetRef()), m.GetGeneration(), fate)
	p.writeTable([]string{"TIME", "AFTER", "STEP"}, p.timelineRows(m))
}

// timelineRows returns past events by time, then the awaited ones. If a service acted on an earlier, equivalent state, the
// timeline includes that state, too.
func (p Printer) timelineRows(m *syncv1.TraceObjectResponse) []tableRow {
	observed := func(at *timestamppb.Timestamp, version string) timelineEvent {
		return timelineEvent{at: at.AsTime(), row: tableRow{cells: []string{p.clockText(at), "", "observed as resource version " + version}}}
	}
	past := []timelineEvent{
		observed(m.GetObservedAt(), m.GetResourceVersion()),
		{at: m.GetPublishedAt().AsTime(), row: tableRow{cells: []string{
			p.clockText(m.GetPublishedAt()), durationBetween(m.GetObservedAt(), m.GetPublishedAt()),
			fmt.Sprintf("published as sequence %d", m.GetSequence()),
		}}},
	}
	var future []tableRow
	seen := map[string]bool{m.GetResourceVersion(): true}
	for _, step := range m.GetSteps() {
		result := step.GetResult()
		if !step.GetCurrent() {
			future = append(future, p.awaitedRow(result))
			continue
		}
		if version := result.GetResourceVersion(); !seen[version] {
			seen[version] = true
			past = append(past, observed(result.GetObservedAt(), version))
		}
		past = append(past, p.finishedEvent(result))
	}
	slices.SortStableFunc(past, func(a, b timelineEvent) int { return a.at.Compare(b.at) })
	rows := make([]tableRow, 0, len(past)+len(future))
	for _, event := range past {
		rows = append(rows, event.row)
	}
	return append(rows, future...)
}

// timelineEvent is a row with its time.
type timelineEvent struct {
	at  time.Time
	row tableRow
}

func (p Printer) finishedEvent(result *eventv1.ResourceResult) timelineEvent {
	what, paint := resultText(result)
	at := result.GetFinishedAt()
	return timelineEvent{at: at.AsTime(), row: tableRow{cells: []string{p.clockText(at), durationBetween(result.GetObservedAt(), at), what}, ink: paint}}
}

func (p Printer) awaitedRow(result *eventv1.ResourceResult) tableRow {
	what := "waiting for " + result.GetService()
	if result.GetFinishedAt() != nil {
		earlier, _ := resultText(result)
		what += fmt.Sprintf("; generation %d was %s, %s", result.GetGeneration(), earlier, p.timeAgoText(result.GetFinishedAt()))
	}
	return tableRow{cells: []string{"", "", what}, ink: wait}
}

// resultText returns what a service did, with its color.
func resultText(result *eventv1.ResourceResult) (string, ansiColor) {
	verb, paint := outcomeText(result.GetOutcome())
	what := verb + " " + result.GetService()
	switch {
	case result.GetMessage() != "":
		what += ": " + result.GetMessage()
	case result.GetOutcome() == eventv1.Outcome_OUTCOME_APPLIED && result.GetWrites() == 0:
		what += ", nothing to write"
	case result.GetWrites() > 0:
		what += ", " + countText(result.GetWrites(), "write")
	}
	return what, paint
}

// outcomeText returns the words for an outcome, with its color.
func outcomeText(o eventv1.Outcome) (string, ansiColor) {
	switch o {
	case eventv1.Outcome_OUTCOME_APPLIED:
		return "applied by", good
	case eventv1.Outcome_OUTCOME_REJECTED:
		return "rejected by", bad
	case eventv1.Outcome_OUTCOME_PENDING:
		return "pending in", wait
	case eventv1.Outcome_OUTCOME_RETRYING:
		return "retried by", wait
	case eventv1.Outcome_OUTCOME_DEAD_LETTERED:
		return "given up by", bad
	default:
		return "seen by", plain
	}
}

// ObjectName returns a name for people, such as "stores.core.platform-mesh.io/demo".
func ObjectName(ref *eventv1.ObjectRef) string {
	name := resourceName(ref.GetGroup(), ref.GetResource()) + "/"
	if ref.GetNamespace() != "" {
		name += ref.GetNamespace() + "/"
	}
	return name + ref.GetName()
}
