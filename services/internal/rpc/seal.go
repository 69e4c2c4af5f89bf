package rpc

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// PageTokenRequest is a request for one page of a list, with the fields page_size and page_token.
type PageTokenRequest interface {
	proto.Message
	GetPageToken() string
}

// tokenSeparator separates the hash of the list from the position in a page token.
const tokenSeparator = "."

// OpenPageToken returns the position in the page token of a request. It returns an error if the token belongs to
// another list or filter. seal makes the token of the next page from a position; it returns "" for "". more lists
// inputs that are not part of the request but change the list.
func OpenPageToken(r PageTokenRequest, more ...string) (token string, seal func(next string) string, err error) {
	of := listHash(r, more) + tokenSeparator
	token, ours := strings.CutPrefix(r.GetPageToken(), of)
	if r.GetPageToken() != "" && !ours {
		return "", nil, InvalidError("the page token belongs to another list or filter: begin without a token")
	}
	return token, func(next string) string {
		if next == "" {
			return ""
		}
		return of + next
	}, nil
}

// listHash returns a short hash of the request without its page and minimum revision.
func listHash(r PageTokenRequest, more []string) string {
	const letters = 8
	m := proto.Clone(r).ProtoReflect()
	for _, name := range []protoreflect.Name{"page_size", "page_token", "min_revision"} {
		if field := m.Descriptor().Fields().ByName(name); field != nil {
			m.Clear(field)
		}
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	if err != nil {
		return "" // This cannot happen: the request was decoded before.
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{string(m.Descriptor().FullName()), string(text)}, more...), "\x00")))
	return hex.EncodeToString(sum[:])[:letters]
}
