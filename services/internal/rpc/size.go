package rpc

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"
)

// compression is gzip that inflates no more than a server takes: what is more than that need not
// be known to be refused.
func compression() connect.HandlerOption {
	return connect.WithCompression("gzip",
		func() connect.Decompressor { return &inflater{} },
		func() connect.Compressor { return gzip.NewWriter(io.Discard) })
}

// inflater reads one byte more than the bound, which tells that it is exceeded.
type inflater struct {
	gzip gzip.Reader
	left int64
}

// Reset implements [connect.Decompressor].
func (i *inflater) Reset(compressed io.Reader) error {
	i.left = maxBody + 1
	return i.gzip.Reset(compressed)
}

// Read implements [connect.Decompressor].
func (i *inflater) Read(p []byte) (int, error) {
	if i.left == 0 {
		return 0, io.EOF
	}
	n, err := i.gzip.Read(p[:min(int64(len(p)), i.left)])
	i.left -= int64(n)
	return n, err
}

// Close implements [connect.Decompressor].
func (i *inflater) Close() error { return i.gzip.Close() }

// tooLarge is the body of an answer that says so: what Connect writes names a reader of its own.
const tooLarge = `{"code":%q,"message":"the request has more than %d bytes (1 MiB), in which JSON has room for 768 KiB of files: send less at a time"}`

// named answers 413 to a message over the bound, the only thing of which Connect says 429 here.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&sizeStatus{ResponseWriter: w}, r) })
}

type sizeStatus struct {
	http.ResponseWriter

	// told says that the answer has been written.
	told bool
}

// WriteHeader implements [http.ResponseWriter].
func (s *sizeStatus) WriteHeader(code int) {
	if code != http.StatusTooManyRequests {
		s.ResponseWriter.WriteHeader(code)
		return
	}
	s.told = true
	s.ResponseWriter.WriteHeader(http.StatusRequestEntityTooLarge)
	_, _ = fmt.Fprintf(s.ResponseWriter, tooLarge, connect.CodeResourceExhausted, maxBody) // Whoever sent too much may be gone.
}

// Write implements [http.ResponseWriter].
func (s *sizeStatus) Write(p []byte) (int, error) {
	if s.told {
		return len(p), nil
	}
	return s.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher], which streams need.
func (s *sizeStatus) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// Unwrap is for [http.ResponseController].
func (s *sizeStatus) Unwrap() http.ResponseWriter { return s.ResponseWriter }
