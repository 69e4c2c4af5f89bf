package report

import (
	"encoding/json"
	"strings"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

// WriteDeclaredTuples lists declared tuples.
func (p Printer) WriteDeclaredTuples(m *tuplev1.ListTuplesResponse) {
	if len(m.GetTuples()) == 0 {
		p.writeLinef("No such tuple is declared.")
		return
	}
	var rows []tableRow
	for _, t := range m.GetTuples() {
		text := tupleText(t.GetKey(), t.GetCondition())
		for _, o := range t.GetOwners() {
			r := tableRow{cells: []string{text, o.GetKind() + "/" + o.GetName(), formatEnum(o.GetState().String(), "STATE_"), truncateCell(o.GetMessage())}}
			if o.GetState() == tuplev1.State_STATE_INVALID {
				r.ink = bad
			}
			rows = append(rows, r)
		}
	}
	p.writeTable([]string{"TUPLE", "DECLARED BY", "IS", headWhy}, rows)
	p.writeMoreNote(m.GetNextPageToken() != "")
}

// WriteUndeclaredTuples lists the tuples that no object declares.
func (p Printer) WriteUndeclaredTuples(m *tuplev1.ListUndeclaredTuplesResponse) {
	if len(m.GetTuples()) == 0 {
		p.writeLinef("Objects declare every tuple in the store.")
		return
	}
	rows := make([]tableRow, len(m.GetTuples()))
	for i, t := range m.GetTuples() {
		by := strings.Join(t.GetRecordedBy(), ", ")
		if by == "" {
			by = "-"
		}
		rows[i] = tableRow{cells: []string{
			tupleText(t.GetKey(), t.GetCondition()), p.timeAgoText(t.GetWrittenAt()), formatEnum(t.GetFate().String(), "FATE_"), by, t.GetMessage(),
		}}
	}
	p.writeTable([]string{"TUPLE", "WRITTEN", "IS", "RECORDED BY", headWhy}, rows)
	p.writeMoreNote(m.GetNextPageToken() != "")
}

// WriteObjects lists the objects to which a user has a relation.
func (p Printer) WriteObjects(m *tuplev1.ListObjectsResponse) {
	for _, object := range m.GetObjects() {
		p.writeLinef("%s", object)
	}
	p.writeListEnd(len(m.GetObjects()), m.GetTruncated())
}

// WriteUsers lists the users that have a relation.
func (p Printer) WriteUsers(m *tuplev1.ListUsersResponse) {
	for _, user := range m.GetUsers() {
		p.writeLinef("%s", user)
	}
	p.writeListEnd(len(m.GetUsers()), m.GetTruncated())
}

// writeListEnd prints whether a list is empty, or may be incomplete.
func (p Printer) writeListEnd(count int, truncated bool) {
	switch {
	case truncated:
		p.writeLinef("Undecided: there may be more, because OpenFGA ended the list at its limit of time or of results.")
	case count == 0:
		p.writeLinef("None, by the tuples in OpenFGA and the model in force.")
	}
}

// WriteAdoptionPreview lists the tuples that are deleted when the IAM store is taken over.
func (p Printer) WriteAdoptionPreview(m *tuplev1.PreviewAdoptionResponse) {
	if m.GetAdopted() {
		p.writeLinef("OpenFGA store %s of Store %s is this cluster's: tuple-sync removes undeclared tuples by itself.", m.GetStoreId(), m.GetStore())
	} else {
		p.writeLinef("OpenFGA store %s of Store %s is not taken over. %s", m.GetStoreId(), m.GetStore(), m.GetMessage())
	}
	if len(m.GetTuples()) == 0 {
		p.writeLinef("No tuple would be deleted.")
		p.writeMoreNote(m.GetNextPageToken() != "")
		return
	}
	rows := make([]tableRow, len(m.GetTuples()))
	for i, t := range m.GetTuples() {
		rows[i] = tableRow{cells: []string{tupleText(t.GetKey(), nil), p.timeAgoText(t.GetWrittenAt())}, ink: bad}
	}
	p.writeTable([]string{"WOULD BE DELETED", "WRITTEN"}, rows)
	p.writeMoreNote(m.GetNextPageToken() != "")
}

// tupleText returns a tuple in the usual notation, object#relation@user.
func tupleText(key *tuplev1.TupleKey, c *tuplev1.Condition) string {
	text := key.GetObject() + "#" + key.GetRelation() + "@" + key.GetUser()
	if c == nil {
		return text
	}
	text += " if " + c.GetName()
	if len(c.GetContext().GetFields()) == 0 {
		return text
	}
	context, err := json.Marshal(c.GetContext().AsMap()) // Unlike protojson, this sorts the keys.
	if err != nil {
		return text
	}
	return text + string(context)
}

// formatEnum returns an enum value as plain words.
func formatEnum(value, prefix string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(value, prefix), "_", " "))
}
