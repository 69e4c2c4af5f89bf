package plan

const (
	// ValueCost is the cost of a JSON value besides its bytes. Decoded, a value takes more memory than its text.
	ValueCost = 32
	// ObjectCost is the cost of a JSON object besides its bytes.
	ObjectCost = 320
	// maxContent bounds the cost of the content of one object, so that it cannot fill the list of a kind.
	maxContent = 1 << 20
)

// MemoryMeter measures the memory that a JSON text takes once it is decoded.
type MemoryMeter struct{ quoted, escaped bool }

// CostOf returns the cost of the next part of the text. Every value except the first follows one of the counted
// characters.
func (m *MemoryMeter) CostOf(part []byte) int {
	cost := len(part)
	for _, c := range part {
		switch {
		case m.escaped:
			m.escaped = false
		case c == '\\':
			m.escaped = true
		case c == '"':
			m.quoted = !m.quoted
		case m.quoted:
		case c == '{':
			cost += ObjectCost
		case c == ',' || c == '[':
			cost += ValueCost
		}
	}
	return cost
}
