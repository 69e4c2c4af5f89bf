package report

import (
	"strconv"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
)

// WriteServiceStatus prints the progress of every service.
func (p Printer) WriteServiceStatus(m *syncv1.GetStatusResponse) {
	if m.GetHalted() != "" {
		p.writeLinef("All services are halted: %s", m.GetHalted())
		p.writeLinef("")
	}
	services := make([]tableRow, 0, len(m.GetServices()))
	for _, s := range m.GetServices() {
		letters := tableRow{ink: plain}
		if s.GetDeadLetters() > 0 {
			letters.ink = bad
		}
		letters.cells = []string{
			s.GetName(), numberText(s.GetPending()), numberText(s.GetInFlight()), numberText(s.GetRedelivered()),
			p.timeAgoText(s.GetLastAckAt()), numberText(s.GetDeadLetters()),
		}
		services = append(services, letters)
	}
	p.writeTable([]string{"SERVICE", "PENDING", "IN FLIGHT", "REDELIVERED", "LAST ACK", "DEAD LETTERS"}, services)
	p.writeLinef("")
	p.writeTable([]string{"RESOURCE", "CLUSTER", "SWEPT", "FOUND", headState}, p.snapshotRows(m.GetSnapshots()))
	p.writeLinef("")
	p.writeLinef("%s on the bus, last sequence %d, %s",
		countText(m.GetObjects(), "object"), m.GetLastSequence(), countText(m.GetDeadLetters(), "dead letter"))
}

func (p Printer) snapshotRows(all []*syncv1.Snapshot) []tableRow {
	rows := make([]tableRow, 0, len(all))
	for _, s := range all {
		marker := s.GetMarker()
		state, paint := "complete", good
		switch {
		case !s.GetCurrent():
			state, paint = "incomplete", wait
		case !marker.GetServed():
			state, paint = "not served", wait
		}
		rows = append(rows, tableRow{ink: paint, cells: []string{
			resourceName(marker.GetGroup(), marker.GetResource()), marker.GetCluster(),
			p.timeAgoText(marker.GetWrittenAt()), strconv.FormatInt(marker.GetCount(), 10), state,
		}})
	}
	return rows
}

func numberText(n uint64) string { return strconv.FormatUint(n, 10) }

// resourceName returns a name such as "stores.core.platform-mesh.io".
func resourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}
