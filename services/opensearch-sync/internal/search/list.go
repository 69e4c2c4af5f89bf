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

const (
	// maxListed bounds a list, in bytes, and maxValues what it becomes: about 30,000 users.
	maxListed = 16 << 20
	maxValues = 500_000
)

// errTooLarge means that a list is larger than what one cluster may take of the memory that all share.
var errTooLarge = fmt.Errorf("OpenSearch lists more than %d bytes or %d values", maxListed, maxValues)

// bounded reads a list, and fails before it has read more of it than is allowed.
type bounded struct {
	from io.Reader
	// bytes and values are how many more it may read. Each value of JSON but the first has one of these characters before it.
	bytes, values int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.bytes -= n
	for _, c := range p[:n] {
		if c == ',' || c == '{' || c == '[' {
			b.values--
		}
	}
	if b.bytes < 0 || b.values < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// List reads all things of a kind. One list is read at a time, so that no cluster takes more memory than one list becomes.
func (c *Client) List(ctx context.Context, kind plan.Kind) (map[string]plan.Entity, error) {
	select {
	case c.listing <- struct{}{}:
		defer func() { <-c.listing }()
	case <-ctx.Done():
		return nil, fault.Unavailable(context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	response, err := c.send(ctx, http.MethodGet, base+string(kind), nil)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind, err)
	}
	defer response.Body.Close()
	all, err := decode(kind, &bounded{from: response.Body, bytes: maxListed, values: maxValues})
	switch {
	case errors.Is(err, errTooLarge):
		return nil, fault.Unavailable(&busy{text: fmt.Sprintf("%v of %s", err, kind)})
	case err != nil: // It may quote what the server has sent.
		return nil, fault.Unavailable(fmt.Errorf("listing %s: the answer is not what OpenSearch lists, or breaks off", kind))
	}
	return all, nil
}

// decode reads a list thing by thing, and keeps of each what matters. A list that breaks off is an error.
func decode(kind plan.Kind, from io.Reader) (map[string]plan.Entity, error) {
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
			all[name] = plan.Read(kind.Keep(listed))
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	_, err := io.Copy(io.Discard, from) // A connection is used again once all is read.
	return all, err
}
