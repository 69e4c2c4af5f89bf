package fga

import "log/slog"

const redacted = "[redacted]"

// Token is a preshared key. Its content is hidden when it is printed or logged.
type Token string

// String returns a placeholder.
func (t Token) String() string {
	if t == "" {
		return ""
	}
	return redacted
}

// GoString returns a placeholder for %#v.
func (t Token) GoString() string { return t.String() }

// LogValue returns a placeholder for slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText returns a placeholder for encoders.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Set implements pflag.Value.
func (t *Token) Set(s string) error {
	*t = Token(s)
	return nil
}

// Type implements pflag.Value.
func (t *Token) Type() string { return "token" }
