package report

import (
	"strconv"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
)

// Status prints the progress of every service.
func (p Page) Status(m *syncv1.GetStatusResponse) {
	if m.GetHalted() != "" {
		p.linef("All services are halted: %s", m.GetHalted())
		p.linef("")
	}
	services := make([]row, 0, len(m.GetServices()))
	for _, s := range m.GetServices() {
		letters := row{ink: plain}
		if s.GetDeadLetters() > 0 {
			letters.ink = bad
		}
		letters.cells = []string{
			s.GetName(), number(s.GetPending()), number(s.GetInFlight()), number(s.GetRedelivered()),
			p.ago(s.GetLastAckAt()), number(s.GetDeadLetters()),
		}
		services = append(services, letters)
	}
	p.table([]string{"SERVICE", "PENDING", "IN FLIGHT", "REDELIVERED", "LAST ACK", "DEAD LETTERS"}, services)
	p.linef("")
	p.table([]string{"RESOURCE", "CLUSTER", "SWEPT", "FOUND", headState}, p.snapshots(m.GetSnapshots()))
	p.linef("")
	p.linef("%s on the bus, last sequence %d, %s",
		count(m.GetObjects(), "object"), m.GetLastSequence(), count(m.GetDeadLetters(), "dead letter"))
}

func (p Page) snapshots(all []*syncv1.Snapshot) []row {
	rows := make([]row, 0, len(all))
	for _, s := range all {
		marker := s.GetMarker()
		state, paint := "complete", good
		switch {
		case !s.GetCurrent():
			state, paint = "incomplete", wait
		case !marker.GetServed():
			state, paint = "not served", wait
		}
		rows = append(rows, row{ink: paint, cells: []string{
			resourceName(marker.GetGroup(), marker.GetResource()), marker.GetCluster(),
			p.ago(marker.GetWrittenAt()), strconv.FormatInt(marker.GetCount(), 10), state,
		}})
	}
	return rows
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// resourceName returns a name such as "stores.core.platform-mesh.io".
func resourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}
