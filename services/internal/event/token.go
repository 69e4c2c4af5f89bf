package event

import (
	"errors"
	"fmt"
	"strings"
)

// emptyToken encodes the empty string. The string "_" itself is escaped, so the two differ.
const emptyToken = "_"

const hexDigits = "0123456789ABCDEF"

var errNotCanonical = errors.New("token is not in canonical form")

// EncodeToken encodes s as one NATS subject token. Letters, digits and "-_:" are kept, every other byte becomes %XX,
// and the empty string becomes "_".
func EncodeToken(s string) string {
	switch s {
	case "":
		return emptyToken
	case emptyToken:
		return "%5F"
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := range len(s) {
		if c := s[i]; isPlainByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&0xF])
		}
	}
	return b.String()
}

func isPlainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == ':'
}

// DecodeToken decodes the output of [EncodeToken] and accepts nothing else. So each string has one encoding, and each
// object one subject.
func DecodeToken(token string) (string, error) {
	if token == emptyToken {
		return "", nil
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if token[i] != '%' {
			b.WriteByte(token[i])
			continue
		}
		if i+2 >= len(token) {
			return "", fmt.Errorf("token %.200q ends within an escape", token)
		}
		high, low := strings.IndexByte(hexDigits, token[i+1]), strings.IndexByte(hexDigits, token[i+2])
		if high < 0 || low < 0 {
			return "", fmt.Errorf("token %.200q: %.3q is not an escape", token, token[i:])
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	if s := b.String(); EncodeToken(s) == token {
		return s, nil
	}
	return "", fmt.Errorf("token %.200q: %w", token, errNotCanonical)
}
