package report

import (
	"strings"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

// WriteLostReferences lists the names in bindings whose objects are gone for good.
func (p Printer) WriteLostReferences(namespace string, m *tuplev1.ListLostBindingsResponse) {
	if len(m.GetReferences()) == 0 {
		where := "any namespace"
		if namespace != "" {
			where = "namespace " + namespace
		}
		p.writeLinef("No PolicyBinding and no GroupMembership of %s names an object that is gone for good.", where)
	} else {
		rows := make([]tableRow, len(m.GetReferences()))
		for i, r := range m.GetReferences() {
			binding := strings.ToLower(r.GetKind()) + "/" + r.GetName()
			rows[i] = tableRow{cells: []string{r.GetNamespace(), binding, r.GetField(), r.GetObject(), r.GetUid(), r.GetReason()}, ink: bad}
		}
		p.writeTable([]string{"NAMESPACE", "BINDING", "FIELD", "OBJECT", "UID", "REASON"}, rows)
	}
	if more := m.GetTotal() - int64(len(m.GetReferences())); more > 0 {
		p.writeLinef("%d more are not listed: raise --limit.", more)
	}
	if len(m.GetNotChecked()) > 0 {
		p.writeLinef("Not checked: %s.", strings.Join(m.GetNotChecked(), "; "))
	}
}
