package fga

import "log/slog"

const redacted = "[redacted]"

// Token is a preshared key. However it is printed or logged, it stays hidden.
type Token string

// String hides the token.
func (t Token) String() string {
	if t == "" {
		return ""
	}
	return redacted
}

// GoString hides the token from %#v.
func (t Token) GoString() string { return t.String() }

// LogValue hides the token from slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText hides the token from encoders.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Set makes a Token a flag value.
func (t *Token) Set(s string) error {
	*t = Token(s)
	return nil
}

// Type makes a Token a flag value.
func (t *Token) Type() string { return "token" }
