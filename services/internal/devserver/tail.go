package devserver

import "sync"

// tailBytes bounds the bytes that a [logTail] keeps.
const tailBytes = 4 << 10

// logTail keeps the last bytes written to it.
type logTail struct {
	mu   sync.Mutex
	data []byte
}

func (t *logTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	t.data = t.data[max(0, len(t.data)-tailBytes):]
	return len(p), nil
}

func (t *logTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}
