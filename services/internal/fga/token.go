package fga

import "log/slog"

const redacted = "[redacted]"

// Credential is a preshared key, an OAuth token or a client secret. Its content is hidden when it is printed or logged.
type Credential string

// String returns a placeholder.
func (t Credential) String() string {
	if t == "" {
		return ""
	}
	return redacted
}

// GoString returns a placeholder for %#v.
func (t Credential) GoString() string { return t.String() }

// LogValue returns a placeholder for slog.
func (t Credential) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText returns a placeholder for encoders.
func (t Credential) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Set implements pflag.Value.
func (t *Credential) Set(s string) error {
	*t = Credential(s)
	return nil
}

// Type implements pflag.Value.
func (t *Credential) Type() string { return "token" }
