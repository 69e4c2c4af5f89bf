package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
)

// zeros returns size zero bytes, compressed to about a thousandth.
func zeros(t *testing.T, size int64) []byte {
	t.Helper()
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if _, err := io.CopyN(w, zeroReader{}, size); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return compressed.Bytes()
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { return len(p), nil }

func TestBodyOverBoundReturns413(t *testing.T) {
	tr := serve(t, nil, fakeStoreService{}.handler())
	tests := map[string]struct {
		body     []byte
		encoding string
	}{
		"plain":      {[]byte(`{"name":"` + strings.Repeat("a", 2*maxBody) + `"}`), "identity"},
		"compressed": {zeros(t, 64*maxBody), "gzip"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				tr.url+storev1connect.StoreServiceGetStoreProcedure, bytes.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Content-Encoding", test.encoding)
			response, err := tr.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusRequestEntityTooLarge || !json.Valid(text) ||
				!strings.Contains(string(text), `"resource_exhausted","message":"the request has more than 1048576 bytes`) {
				t.Errorf("answer is %d %s (%v)", response.StatusCode, text, err)
			}
		})
	}
}

func TestGzipInflationIsBounded(t *testing.T) {
	var i boundedInflater
	compressed := zeros(t, 64*maxBody)
	for range 2 {
		source := bytes.NewReader(compressed)
		if err := i.Reset(source); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, &i)
		if err != nil || n != maxBody+1 || source.Len() == 0 {
			t.Errorf("%d bytes inflated, %d not read (%v)", n, source.Len(), err)
		}
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}
