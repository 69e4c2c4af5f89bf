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
	// smallLists bounds the cost of the lists that any caller may hold; see [plan.MemoryMeter]. It allows about 900 users.
	smallLists = 1 << 20
	// largeLists bounds the cost of the lists that one of few callers may hold. It allows about 30,000 users with their
	// roles.
	largeLists = 48 << 20
	// maxEntity bounds the text of one entity, because the decoder holds all of it. No request may be larger, either.
	maxEntity = 4 << 20
	// maxRead bounds how far the reader is ahead of the decoder.
	maxRead = 32 << 10
)

var (
	// ErrLarge means that the lists need a large [Allowance].
	ErrLarge = errors.New("OpenSearch has large lists")
	// errTooLarge means that the lists exceed the memory that one cluster may use.
	errTooLarge = fmt.Errorf("OpenSearch lists more than %d MiB, counting %d bytes for each value and %d for each object besides its text, "+
		"or one entity of more than %d MiB,", largeLists>>20, plan.ValueCost, plan.ObjectCost, maxEntity>>20)
)

// Allowance bounds the memory of all lists that one caller holds at a time.
type Allowance struct {
	left, size int
	// most is the highest cost before the last reset.
	most     int
	exceeded error
}

// NewAllowance returns an allowance for small lists, or for large ones. The caller bounds the number of large ones.
func NewAllowance(large bool) *Allowance {
	if large {
		return &Allowance{left: largeLists, size: largeLists, exceeded: errTooLarge}
	}
	return &Allowance{left: smallLists, size: smallLists, exceeded: ErrLarge}
}

// Reset makes room for other lists, because the caller holds the earlier ones no longer.
func (a *Allowance) Reset() { a.most, a.left = max(a.most, a.size-a.left), a.size }

// IsSmall reports whether the lists so far fit into a small allowance.
func (a *Allowance) IsSmall() bool { return max(a.most, a.size-a.left) <= smallLists }

// boundedReader reads a list and returns an error once it exceeds its bounds.
type boundedReader struct {
	from  io.Reader
	meter plan.MemoryMeter
	of    *Allowance
	// read counts all bytes, and entity those before the present entity.
	read, entity int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p[:min(len(p), maxRead)])
	b.read += int64(n)
	if b.of.left -= b.meter.CostOf(p[:n]); b.of.left < 0 {
		return 0, b.of.exceeded
	}
	if b.read-b.entity > maxEntity {
		return 0, errTooLarge
	}
	return n, err
}

// List reads all entities of a kind. A client reads one list at a time.
func (c *Client) List(ctx context.Context, kind plan.EntityKind, of *Allowance) (map[string]plan.Entity, error) {
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
	all := map[string]plan.Entity{}
	err = decodeList(all, kind, &boundedReader{from: response.Body, of: of})
	switch {
	case errors.Is(err, ErrLarge):
		return nil, fault.Unavailable(err)
	case errors.Is(err, errTooLarge):
		return nil, fault.Unavailable(&busyError{text: fmt.Sprintf("%v of %s", err, kind)})
	case err != nil: // The error may quote data of the server.
		return nil, fault.Unavailable(fmt.Errorf("listing %s: the answer has another form than OpenSearch's lists, or ends too early", kind))
	}
	return all, nil
}

// decodeList reads a list into all, entity by entity, and keeps the relevant fields. A truncated list is an error.
func decodeList(all map[string]plan.Entity, kind plan.EntityKind, from *boundedReader) error {
	decoder := json.NewDecoder(from)
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(err, errors.New("no object"))
	}
	for decoder.More() {
		from.entity = decoder.InputOffset()
		token, err := decoder.Token()
		name, is := token.(string)
		if err != nil || !is {
			return errors.Join(err, errors.New("no name"))
		}
		var listed map[string]any
		if err := decoder.Decode(&listed); err != nil {
			return err
		}
		if name != "_meta" {
			all[name] = plan.NewEntity(kind.KeepKnownFields(listed))
		}
	}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	from.entity = decoder.InputOffset()
	_, err := io.Copy(io.Discard, from) // HTTP reuses a connection only after the whole body was read.
	return err
}
