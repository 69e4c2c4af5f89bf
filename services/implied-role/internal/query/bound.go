package query

import (
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/internal/rpc"
)

// How many bytes an answer has, about. A row that is larger than its list may be, is alone in it.
const (
	// maxAnswer is for all rows of a page, or of a message of a stream.
	maxAnswer = 2 << 20
	// maxList is for one of several lists of rows without pages.
	maxList = 512 << 10
	// maxPart is for a list within a row.
	maxPart = 64 << 10
	// framing is what a row costs in its list.
	framing = 4
)

// fit makes messages of items, in order, until they have so many bytes; at least one.
func fit[T any, M proto.Message](items []T, most int, message func(T) M) []M {
	list := make([]M, 0, min(len(items), rowsPerMessage))
	for _, item := range items {
		m := message(item)
		if most -= proto.Size(m) + framing; most < 0 && len(list) > 0 {
			break
		}
		list = append(list, m)
	}
	return list
}

// names are as many texts as a row may have.
func names(all []string) []string {
	left := maxPart
	for i, text := range all {
		if left -= len(text) + framing; left < 0 && i > 0 {
			return all[:i:i]
		}
	}
	return all
}

// pageOf is [rpc.Page], with fewer rows when they are large.
func pageOf[T any, M proto.Message](all []T, key func(T) string, r rpc.Paged, message func(T) M) (rows []M, next string, err error) {
	items, next, err := rpc.Page(all, key, r)
	if err != nil {
		return nil, "", err
	}
	if rows = fit(items, maxAnswer, message); len(rows) < len(items) {
		_, next, err = rpc.Page(all, key, shorter{r, int32(len(rows))})
	}
	return rows, next, err
}

// shorter asks for less.
type shorter struct {
	rpc.Paged

	size int32
}

// GetPageSize implements [rpc.Paged].
func (s shorter) GetPageSize() int32 { return s.size }
