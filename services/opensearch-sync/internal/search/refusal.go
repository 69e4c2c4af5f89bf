package search

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
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

// answer is the server's word on what it refuses, in any of the forms that its errors have.
type answer struct {
	Message string          `json:"message"`
	Reason  string          `json:"reason"`
	Error   json.RawMessage `json:"error"`
	Invalid struct {
		Keys string `json:"keys"`
	} `json:"invalid_keys"`

	// core is an error of the server itself, whoever has called; it is a text where nothing is at the path.
	core struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	nowhere string
	// details are what it says of single values, by their names.
	details string
}

func read(data []byte) (a answer) {
	if json.Unmarshal(data, &a) == nil && json.Unmarshal(a.Error, &a.core) != nil {
		_ = json.Unmarshal(a.Error, &a.nowhere) // It is in none of the forms.
	}
	var all map[string]any
	if a.Reason == "" || json.Unmarshal(data, &all) != nil {
		return a
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if detail, is := all[name].(string); is && name != "status" && name != "reason" && name != "message" {
			a.details += fmt.Sprintf(": %s (%s)", name, detail)
		}
	}
	return a
}

// text is what the server says, if it says anything.
func (a answer) text() string {
	text := cmp.Or(a.Message, a.Reason, a.core.Reason, a.nowhere)
	if a.Invalid.Keys != "" {
		text += ": " + a.Invalid.Keys
	}
	return text + a.details
}

// refusal makes an error of an answer. What waiting cures is marked as the dependency's fault.
func refusal(code int, data []byte, secrets ...string) error {
	a := read(data)
	text := fmt.Sprintf("OpenSearch answers %d: %s", code, clip.Line(redact(cmp.Or(a.text(), http.StatusText(code)), secrets), maxReason))
	switch {
	case code == http.StatusConflict:
		return fault.Unavailable(fmt.Errorf("%w: %s", ErrConflict, text))
	case a.passes(code):
		return fault.Unavailable(&busy{code, text})
	}
	return &RefusedError{Code: code, Text: text}
}

// passes tells what passes by itself, or once a person has mended the connection. Refusals quote what was sent: words of the server
// count only where nothing of that can stand, or whoever names a thing after them would have everybody wait.
func (a answer) passes(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusRequestTimeout,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusForbidden:
		return strings.HasPrefix(a.Message, "No permission to access REST API")
	case http.StatusInternalServerError:
		return strings.HasSuffix(strings.TrimRight(a.Message, "."), "not initialized") && !strings.ContainsAny(a.Message, "'\"") ||
			a.core.Type == "null_pointer_exception" && strings.Contains(a.core.Reason, "configModel")
	}
	return code/100 == 3 || strings.HasPrefix(a.nowhere, "no handler found")
}

// pointer is a name as part of a path of a patch.
func pointer(name string) string { return strings.ReplaceAll(name, "/", "~1") }

// Misread reports whether OpenSearch reads a name in a patch as another one: it decodes ~0 before ~1, so that ~01 becomes a slash.
func Misread(name string) bool { return strings.Contains(name, "~") }

func misread() error {
	return &RefusedError{Text: "a name has the character ~, which OpenSearch reads otherwise"}
}

// busy is the server's word that it cannot answer now.
type busy struct {
	code int
	text string
}

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
	_, sentence := Class(err)
	return "OpenSearch gives no answer: " + sentence
}
