package rpc

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	defaultPageSize = 100
	maxPageSize     = 1000
	maxTokenLength  = 4096
	checksumSize    = 8
)

// Paged is a request for a page of a list.
type Paged interface {
	proto.Message
	GetPageSize() int32
	GetPageToken() string
}

// Page cuts one page out of items, which are sorted by key, and gives the token of the
// next page, empty on the last. A key must belong to one item only. A size of 0 or less
// means 100; at most 1000 are given.
//
// A token names the last key that was given, so pages neither repeat nor miss an item
// that is there throughout, whatever comes and goes in between. It is good for the same
// question alone: another list, or another filter, refuses it.
func Page[T any](items []T, key func(T) string, r Paged) (page []T, next string, err error) {
	if r.GetPageToken() != "" {
		last, err := PageKey(r)
		if err != nil {
			return nil, "", err
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
	return items[:n:n], PageToken(r, key(items[n-1])), nil
}

// PageToken is that of the page behind the item with this key. It carries the key behind a
// checksum of it and of the question, so that a damaged or invented token, or that of another list,
// is told from a real one. It guards against mistakes, not against malice: a forged token can only
// start the list elsewhere.
func PageToken(r Paged, key string) string {
	return base64.RawURLEncoding.EncodeToString(append(checksum(r, key), key...))
}

// PageKey is what the token of r was made of by [PageToken].
func PageKey(r Paged) (key string, err error) {
	if len(r.GetPageToken()) <= maxTokenLength {
		data, err := base64.RawURLEncoding.DecodeString(r.GetPageToken())
		if err == nil && len(data) >= checksumSize && bytes.Equal(data[:checksumSize], checksum(r, string(data[checksumSize:]))) {
			return string(data[checksumSize:]), nil
		}
	}
	return "", Invalid("the page token is damaged, or of another list or filter: pass next_page_token as it was given, or none for the first page")
}

// checksum is of a key and of what is asked, whichever page of it and however fresh.
func checksum(r Paged, key string) []byte {
	m := proto.Clone(r).ProtoReflect()
	for _, field := range []protoreflect.Name{"page_size", "page_token", "min_revision"} {
		if known := m.Descriptor().Fields().ByName(field); known != nil {
			m.Clear(known)
		}
	}
	// What was decoded can be encoded.
	question, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	sum := xxhash.New()
	for _, part := range []string{string(m.Descriptor().FullName()), string(question), key} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return sum.Sum(nil)
}
