// Package output writes large texts into exactly sized memory. It runs the writer twice, first to measure.
package output

// MeasuringWriter measures or collects the text.
type MeasuringWriter struct {
	size int
	text []byte
}

// WriteText adds strings.
func (w *MeasuringWriter) WriteText(parts ...string) {
	for _, part := range parts {
		w.size += len(part)
		if w.text != nil {
			w.text = append(w.text, part...)
		}
	}
}

// Size returns the number of bytes added.
func (w *MeasuringWriter) Size() int { return w.size }

// WriteWithinLimit returns the output of write and its size. If the size exceeds limit bytes, the output is nil. A negative limit
// means no limit. write must write the same each time.
func WriteWithinLimit(limit int, write func(*MeasuringWriter)) ([]byte, int) {
	var measured MeasuringWriter
	write(&measured)
	if limit >= 0 && measured.size > limit {
		return nil, measured.size
	}
	w := MeasuringWriter{text: make([]byte, 0, measured.size+1)}
	write(&w)
	return w.text, w.size
}
