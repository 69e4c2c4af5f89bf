package rpc

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"
)

// boundedGzip returns gzip that decompresses at most the allowed size of a message. It refuses a larger message
// without decompressing the rest.
func boundedGzip() connect.HandlerOption {
	return connect.WithCompression("gzip",
		func() connect.Decompressor { return &boundedInflater{} },
		func() connect.Compressor { return gzip.NewWriter(io.Discard) })
}

// boundedInflater reads at most one byte more than the allowed size. This is enough to detect a larger message.
type boundedInflater struct {
	gzip gzip.Reader
	left int64
}

// Reset implements [connect.Decompressor].
func (i *boundedInflater) Reset(compressed io.Reader) error {
	i.left = maxBody + 1
	return i.gzip.Reset(compressed)
}

// Read implements [connect.Decompressor].
func (i *boundedInflater) Read(p []byte) (int, error) {
	if i.left == 0 {
		return 0, io.EOF
	}
	n, err := i.gzip.Read(p[:min(int64(len(p)), i.left)])
	i.left -= int64(n)
	return n, err
}

// Close implements [connect.Decompressor].
func (i *boundedInflater) Close() error { return i.gzip.Close() }

// tooLarge is the body of the answer to a message that is too large. Connect's own text mentions an internal reader.
const tooLarge = `{"code":%q,"message":"the request has more than %d bytes (1 MiB), in which JSON has room for 768 KiB of files: send less at a time"}`

// rewriteTooLargeStatus answers with status 413 if a message is too large. Connect answers 429, and only in this case.
func rewriteTooLargeStatus(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&tooLargeWriter{ResponseWriter: w}, r) })
}

type tooLargeWriter struct {
	http.ResponseWriter

	// answered is set after the answer was written.
	answered bool
}

// WriteHeader implements [http.ResponseWriter].
func (s *tooLargeWriter) WriteHeader(code int) {
	if code != http.StatusTooManyRequests {
		s.ResponseWriter.WriteHeader(code)
		return
	}
	s.answered = true
	s.ResponseWriter.WriteHeader(http.StatusRequestEntityTooLarge)
	_, _ = fmt.Fprintf(s.ResponseWriter, tooLarge, connect.CodeResourceExhausted, maxBody) // The client may be gone.
}

// Write implements [http.ResponseWriter].
func (s *tooLargeWriter) Write(p []byte) (int, error) {
	if s.answered {
		return len(p), nil
	}
	return s.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher], which streams need.
func (s *tooLargeWriter) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// Unwrap returns the wrapped writer, for [http.ResponseController].
func (s *tooLargeWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
