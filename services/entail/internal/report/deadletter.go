package report

import (
	"fmt"
	"unicode/utf8"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
)

// maxReason bounds a reason in a list, in characters; the dead letter itself holds the whole reason.
const maxReason = 100

// WriteDeadLetters lists dead letters.
func (p Printer) WriteDeadLetters(letters []*syncv1.DeadLetter) {
	if len(letters) == 0 {
		p.writeLinef("no dead letters")
		return
	}
	rows := make([]tableRow, 0, len(letters))
	for _, l := range letters {
		rows = append(rows, tableRow{cells: []string{
			numberText(l.GetId()), l.GetService(), deadLetterObjectName(l), p.timeAgoText(l.GetParkedAt()), truncateCell(l.GetReason()),
		}})
	}
	p.writeTable([]string{"ID", "SERVICE", "OBJECT", "PARKED", "REASON"}, rows)
}

// WriteDeadLetter shows a dead letter with its message.
func (p Printer) WriteDeadLetter(m *syncv1.GetDeadLetterResponse) {
	l := m.GetDeadLetter()
	for _, field := range [][2]string{
		{"id", numberText(l.GetId())},
		{"service", l.GetService()},
		{"object", deadLetterObjectName(l)},
		{"subject", l.GetSubject()},
		{"sequence", numberText(l.GetOriginalSequence())},
		{"parked", fmt.Sprintf("%s (%s)", p.clockText(l.GetParkedAt()), p.timeAgoText(l.GetParkedAt()))},
		{"reason", l.GetReason()},
	} {
		p.writeLinef("%-9s %s", field[0], field[1])
	}
	if m.GetChangeJson() == "" {
		p.writeLinef("%-9s %d bytes that do not decode: %.200q", "message", len(m.GetData()), m.GetData())
		return
	}
	p.writeLinef("message")
	if WriteDocument(p.Out, JSON, []byte(m.GetChangeJson())) != nil {
		p.writeLinef("%s", m.GetChangeJson())
	}
}

func deadLetterObjectName(l *syncv1.DeadLetter) string {
	if l.GetRef() == nil {
		return "-"
	}
	return ObjectName(l.GetRef())
}

func truncateCell(s string) string {
	if utf8.RuneCountInString(s) <= maxReason {
		return s
	}
	return string([]rune(s)[:maxReason-1]) + "…"
}

// WriteReplayResult prints the object that was published again.
func (p Printer) WriteReplayResult(m *syncv1.ReplayResponse) {
	p.writeLinef("%s published again as sequence %d", ObjectName(m.GetRef()), m.GetSequence())
}

// WriteResumeResult prints why services were halted.
func (p Printer) WriteResumeResult(m *syncv1.ResumeResponse) {
	if m.GetHalted() == "" {
		p.writeLinef("services are not halted")
		return
	}
	p.writeLinef("services are resumed; they were halted: %s", m.GetHalted())
}

// WriteDiscardResult prints the dead letter that was discarded.
func (p Printer) WriteDiscardResult(m *syncv1.DiscardDeadLetterResponse) {
	l := m.GetDeadLetter()
	if m.GetMessageRemoved() {
		p.writeLinef("dead letter %d of %s discarded; message %d was no change, and has left the bus", l.GetId(), l.GetService(), l.GetOriginalSequence())
		return
	}
	p.writeLinef("dead letter %d of %s discarded", l.GetId(), l.GetService())
}
