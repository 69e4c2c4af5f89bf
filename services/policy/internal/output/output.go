// Package output writes texts of any size into exactly as much memory as they need: it lets
// the writer run twice, first to measure.
package output

// Writer takes the text.
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

// Size is how many bytes have been added.
func (w *Writer) Size() int { return w.size }

// Of returns what write writes, unless that is more than limit bytes: then it returns nil, and how much it is.
// A negative limit is none. Write must write the same each time.
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
