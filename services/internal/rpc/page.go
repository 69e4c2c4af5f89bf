package rpc

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

const (
	defaultPageSize = 100
	maxPageSize     = 1000
	maxTokenLength  = 4096
	checksumSize    = 8
)

// PageSizeRequest is a request for one page with a size.
type PageSizeRequest interface {
	PageTokenRequest
	GetPageSize() int32
}

// Paginate returns one page of items and the token of the next page, which is empty on the last page. items must be
// sorted by unique keys. A size of 0 or less means 100; the maximum is 1000.
//
// A token contains the last returned key. So an item that exists during the whole listing is returned exactly once. A
// token is valid only for the same list and filter.
func Paginate[T any](items []T, key func(T) string, r PageSizeRequest) (page []T, next string, err error) {
	token, seal, err := OpenPageToken(r)
	if err != nil {
		return nil, "", err
	}
	if token != "" {
		last, ok := parsePageToken(token)
		if !ok {
			return nil, "", InvalidError("page token is not one of this list: pass next_page_token as it was given, or none for the first page")
		}
		start, found := slices.BinarySearchFunc(items, last, func(item T, last string) int { return strings.Compare(key(item), last) })
		if found {
			start++
		}
		items = items[start:]
	}
	size := int(r.GetPageSize())
	if size <= 0 {
		size = defaultPageSize
	}
	n := min(size, maxPageSize)
	if len(items) <= n {
		return items, "", nil
	}
	return items[:n:n], seal(encodePageToken(key(items[n-1]))), nil
}

// encodePageToken prefixes the key with a checksum, which detects damaged tokens. A forged token does no harm: it only
// starts the list at another key.
func encodePageToken(key string) string {
	sum := binary.BigEndian.AppendUint64(nil, xxhash.Sum64String(key))
	return base64.RawURLEncoding.EncodeToString(append(sum, key...))
}

func parsePageToken(token string) (key string, ok bool) {
	if len(token) > maxTokenLength {
		return "", false
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(data) < checksumSize {
		return "", false
	}
	key = string(data[checksumSize:])
	return key, binary.BigEndian.Uint64(data) == xxhash.Sum64String(key)
}
