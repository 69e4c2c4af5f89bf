package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// maxListed bounds the cost of a list; see [plan.MemoryMeter]. It allows about 30,000 users.
const maxListed = 20 << 20

// errTooLarge means that a list exceeds the memory that one cluster may use.
var errTooLarge = errors.New("OpenSearch lists more than 20 MiB, counting 32 bytes for each value besides its text,")

// boundedReader reads a list and returns an error once it exceeds its bound.
type boundedReader struct {
	from  io.Reader
	meter plan.MemoryMeter
	left  int
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= b.meter.CostOf(p[:n]); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// List reads all entities of a kind. A client reads one list at a time, which bounds the memory for each cluster.
func (c *Client) List(ctx context.Context, kind plan.EntityKind) (map[string]plan.Entity, error) {
	select {
	case c.listing <- struct{}{}:
		defer func() { <-c.listing }()
	case <-ctx.Done():
		return nil, fault.Unavailable(context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	response, err := c.sendRequest(ctx, http.MethodGet, base+string(kind), nil)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind, err)
	}
	defer response.Body.Close()
	all, err := decodeList(kind, &boundedReader{from: response.Body, left: maxListed})
	switch {
	case errors.Is(err, errTooLarge):
		return nil, fault.Unavailable(&busyError{text: fmt.Sprintf("%v of %s", err, kind)})
	case err != nil: // The error may quote data of the server.
		return nil, fault.Unavailable(fmt.Errorf("listing %s: the answer is not what OpenSearch lists, or breaks off", kind))
	}
	return all, nil
}

// decodeList reads a list entity by entity and keeps the relevant fields. A truncated list is an error.
func decodeList(kind plan.EntityKind, from io.Reader) (map[string]plan.Entity, error) {
	decoder, all := json.NewDecoder(from), map[string]plan.Entity{}
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.Join(err, errors.New("no object"))
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, is := token.(string)
		if err != nil || !is {
			return nil, errors.Join(err, errors.New("no name"))
		}
		var listed map[string]any
		if err := decoder.Decode(&listed); err != nil {
			return nil, err
		}
		if name != "_meta" {
			all[name] = plan.NewEntity(kind.KeepKnownFields(listed))
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	_, err := io.Copy(io.Discard, from) // HTTP reuses a connection only after the whole body was read.
	return all, err
}
