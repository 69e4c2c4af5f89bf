// Package output writes large texts into exactly sized memory. It runs the writer twice, first to measure.
package output

// Writer measures or collects the text.
type Writer struct {
	size int
	text []byte
}

// Text adds strings.
func (w *Writer) Text(parts ...string) {
	for _, part := range parts {
		w.size += len(part)
		if w.text != nil {
			w.text = append(w.text, part...)
		}
	}
}

// Size returns the number of bytes added.
func (w *Writer) Size() int { return w.size }

// Of returns the output of write and its size. If the size exceeds limit bytes, the output is nil. A negative limit
// means no limit. write must write the same each time.
func Of(limit int, write func(*Writer)) ([]byte, int) {
	var measured Writer
	write(&measured)
	if limit >= 0 && measured.size > limit {
		return nil, measured.size
	}
	w := Writer{text: make([]byte, 0, measured.size+1)}
	write(&w)
	return w.text, w.size
}
