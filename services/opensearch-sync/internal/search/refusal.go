package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/entail-dev/entail/services/internal/clip"
	"github.com/entail-dev/entail/services/internal/fault"
)

// maxReason bounds what is told of OpenSearch's words, in bytes.
const maxReason = 512

// RefusedError is OpenSearch's answer that a request will not do as it is.
type RefusedError struct {
	Code int
	// Text is the server's own, if it is in one of the forms that its errors have.
	Text string
}

// Error implements error.
func (r *RefusedError) Error() string { return r.Text }

// ErrConflict means that somebody else has written a document at the same time.
var ErrConflict = errors.New("somebody else writes, too")

// minRedacted is the length of secrets that are taken out of what OpenSearch says: shorter ones are in any text.
const minRedacted = 4

// redact takes secrets out of a text, as they are and as JSON writes them.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) < minRedacted {
			continue
		}
		encoded, err := json.Marshal(secret)
		if err != nil {
			return "[redacted]"
		}
		text = strings.NewReplacer(secret, "[redacted]", strings.Trim(string(encoded), `"`), "[redacted]").Replace(text)
	}
	return text
}

// refusal makes an error of an answer. What waiting cures is marked as the dependency's fault.
func refusal(code int, data []byte, secrets ...string) error {
	var body struct {
		Message string          `json:"message"`
		Reason  string          `json:"reason"`
		Error   json.RawMessage `json:"error"`
		Invalid struct {
			Keys string `json:"keys"`
		} `json:"invalid_keys"`
	}
	text := ""
	if json.Unmarshal(data, &body) == nil {
		var inner struct {
			Reason string `json:"reason"`
		}
		if json.Unmarshal(body.Error, &inner) != nil { // It is a text in some.
			_ = json.Unmarshal(body.Error, &inner.Reason)
		}
		for _, part := range []string{body.Message, body.Reason, inner.Reason} {
			if text == "" {
				text = part
			}
		}
		if body.Invalid.Keys != "" {
			text += ": " + body.Invalid.Keys
		}
	}
	if text == "" {
		text = http.StatusText(code)
	}
	text = fmt.Sprintf("OpenSearch answers %d: %s", code, clip.Line(redact(text, secrets), maxReason))
	switch {
	case code == http.StatusConflict:
		return fault.Unavailable(fmt.Errorf("%w: %s", ErrConflict, text))
	case transient(code, text):
		return fault.Unavailable(&busy{text})
	}
	return &RefusedError{Code: code, Text: text}
}

// transient tells what passes by itself, or once a person has mended the connection.
func transient(code int, text string) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusRequestTimeout,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusForbidden:
		return strings.Contains(text, "No permission to access REST API")
	case http.StatusInternalServerError:
		return strings.Contains(text, "not initialized") || strings.Contains(text, "configModel") || strings.Contains(text, "null")
	}
	return code/100 == 3 || strings.Contains(text, "no handler found")
}

// pointer is a name as part of a path of a patch.
func pointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// busy is the server's word that it cannot answer now.
type busy struct{ text string }

// Error implements error.
func (b *busy) Error() string { return b.text }

// Cause is what people are told of an error: the server's own words, or else the same sentence each time.
func Cause(err error) string {
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		return refusal.Text
	}
	if b, ok := errors.AsType[*busy](err); ok {
		return b.text
	}
	return "OpenSearch gives no answer: the log of opensearch-sync says why"
}
