package rpc

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// PageRequest asks for one page of a list. Its fields page_size and page_token say which.
type PageRequest interface {
	proto.Message
	GetPageToken() string
}

// tokenSeparator stands between what a page token is of and what it says.
const tokenSeparator = "."

// Unseal is what the page token of a request says, and seal makes the token of the next page, empty on
// the last. It is of use for the same list with the same filter alone; more is what the list depends
// on beside the request.
func Unseal(r PageRequest, more ...string) (token string, seal func(next string) string, err error) {
	of := listOf(r, more) + tokenSeparator
	token, ours := strings.CutPrefix(r.GetPageToken(), of)
	if r.GetPageToken() != "" && !ours {
		return "", nil, Invalid("the page token is of another list or filter: begin without one")
	}
	return token, func(next string) string {
		if next == "" {
			return ""
		}
		return of + next
	}, nil
}

// listOf is a short name of the list that is asked for, whichever page of it and however fresh.
func listOf(r PageRequest, more []string) string {
	const letters = 8
	m := proto.Clone(r).ProtoReflect()
	for _, name := range []protoreflect.Name{"page_size", "page_token", "min_revision"} {
		if field := m.Descriptor().Fields().ByName(name); field != nil {
			m.Clear(field)
		}
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	if err != nil {
		return "" // It was decoded a moment ago.
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{string(m.Descriptor().FullName()), string(text)}, more...), "\x00")))
	return hex.EncodeToString(sum[:])[:letters]
}
