package report

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

const day = 24 * time.Hour

// clockText returns the time of day, with the date if the time is more than 24 hours away.
func (p Printer) clockText(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	local := at.AsTime().In(cmp.Or(p.Zone, time.UTC))
	if age := p.Now.Sub(local); age > day || age < -day {
		return local.Format("2006-01-02 15:04:05.000")
	}
	return local.Format("15:04:05.000")
}

// timeAgoText returns the rough time since at.
func (p Printer) timeAgoText(at *timestamppb.Timestamp) string {
	if at == nil {
		return "never"
	}
	return roughDuration(p.Now.Sub(at.AsTime())) + " ago"
}

// roughDuration returns a duration in its largest useful unit.
func roughDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 0))
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d/day))
	}
}

// durationBetween returns the time between two moments.
func durationBetween(from, to *timestamppb.Timestamp) string {
	if from == nil || to == nil {
		return ""
	}
	d := to.AsTime().Sub(from.AsTime())
	if d.Abs() < 10*time.Second {
		return fmt.Sprintf("%+d ms", d.Milliseconds())
	}
	return "+" + roughDuration(d)
}
