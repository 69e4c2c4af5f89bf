package query

import (
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/internal/rpc"
)

// Approximate limits of the bytes in an answer. A row that is larger than the limit of its list is sent alone.
const (
	// maxAnswer bounds all rows of a page, or of one message of a stream.
	maxAnswer = 2 << 20
	// maxList bounds each list of an answer that has several lists without pages.
	maxList = 512 << 10
	// maxPart bounds a list within a row.
	maxPart = 64 << 10
	// framing is the overhead of a row in its list.
	framing = 4
)

// toMessagesThatFit converts items to messages, in order, until the limit of bytes is reached. It converts at least one.
func toMessagesThatFit[T any, M proto.Message](items []T, most int, message func(T) M) []M {
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

// namesThatFit returns as many of the texts as fit in a row, at least one.
func namesThatFit(all []string) []string {
	left := maxPart
	for i, text := range all {
		if left -= len(text) + framing; left < 0 && i > 0 {
			return all[:i:i]
		}
	}
	return all
}

// pageThatFits works as [rpc.Paginate], but returns fewer rows if they are large.
func pageThatFits[T any, M proto.Message](all []T, key func(T) string, r rpc.PageSizeRequest, message func(T) M) (rows []M, next string, err error) {
	items, next, err := rpc.Paginate(all, key, r)
	if err != nil {
		return nil, "", err
	}
	if rows = toMessagesThatFit(items, maxAnswer, message); len(rows) < len(items) {
		_, next, err = rpc.Paginate(all, key, requestWithPageSize{r, int32(len(rows))})
	}
	return rows, next, err
}

// requestWithPageSize is a request with a smaller page size.
type requestWithPageSize struct {
	rpc.PageSizeRequest

	size int32
}

// GetPageSize implements [rpc.PageSizeRequest].
func (s requestWithPageSize) GetPageSize() int32 { return s.size }
