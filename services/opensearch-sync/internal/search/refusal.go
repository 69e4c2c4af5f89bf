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

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// maxReason bounds a quotation of OpenSearch's answer, in bytes.
const maxReason = 512

// RefusedError means that OpenSearch rejects a request as it is.
type RefusedError struct {
	Code int
	// Text is the message of the server, if the answer has one of the known forms.
	Text string
}

func (r *RefusedError) Error() string { return r.Text }

// ErrConflict means that another client has written the same document at the same time.
var ErrConflict = errors.New("another client also writes")

// minRedacted is the least length of a secret that redact removes. Shorter ones occur in any text.
const minRedacted = 4

// redactSecrets removes secrets from a text, both plain and encoded as JSON.
func redactSecrets(text string, secrets []string) string {
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

// errorAnswer is an error of the server, in any of the forms that its errors have.
type errorAnswer struct {
	Message string          `json:"message"`
	Reason  string          `json:"reason"`
	Error   json.RawMessage `json:"error"`
	Invalid struct {
		Keys string `json:"keys"`
	} `json:"invalid_keys"`

	// core is an error of the server outside the security API. For an unknown path the field is a plain text instead,
	// nowhere.
	core struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	nowhere string
	// details holds the messages about single values, by their names.
	details string
}

func parseErrorAnswer(data []byte) (a errorAnswer) {
	if json.Unmarshal(data, &a) == nil && json.Unmarshal(a.Error, &a.core) != nil {
		_ = json.Unmarshal(a.Error, &a.nowhere) // The answer has none of the forms.
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

// messageText returns the message of the server, or "".
func (a errorAnswer) messageText() string {
	text := cmp.Or(a.Message, a.Reason, a.core.Reason, a.nowhere)
	if a.Invalid.Keys != "" {
		text += ": " + a.Invalid.Keys
	}
	return text + a.details
}

// answerToError returns the error for an answer. The error is [fault.Unavailable] if waiting can cure it, and a
// [RefusedError] otherwise.
func answerToError(code int, data []byte, secrets ...string) error {
	a := parseErrorAnswer(data)
	text := fmt.Sprintf("OpenSearch answers %d: %s", code, truncate.Line(redactSecrets(cmp.Or(a.messageText(), http.StatusText(code)), secrets), maxReason))
	switch {
	case code == http.StatusConflict:
		return fault.Unavailable(fmt.Errorf("%w: %s", ErrConflict, text))
	case a.isTemporary(code):
		return fault.Unavailable(&busyError{code, text})
	}
	return &RefusedError{Code: code, Text: text}
}

// isTemporary reports whether the error ends by itself or once the connection is corrected. Refusals quote the request, so
// passes compares only parts of a message that cannot contain a quotation. Otherwise a name with such words would block
// all objects.
func (a errorAnswer) isTemporary(code int) bool {
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

// escapeJSONPointer returns a name as a part of a patch path.
func escapeJSONPointer(name string) string { return strings.ReplaceAll(name, "/", "~1") }

// IsMisreadName reports whether OpenSearch reads a name in a patch as another one. It decodes ~0 before ~1, so that ~01
// becomes a slash.
func IsMisreadName(name string) bool { return strings.Contains(name, "~") }

func misreadNameError() error {
	return &RefusedError{Text: "a name has the character ~, which OpenSearch reads otherwise"}
}

// busyError means that the server cannot answer now.
type busyError struct {
	code int
	text string
}

func (b *busyError) Error() string { return b.text }

// UserMessage returns the text of an error for users: the message of the server, or a fixed sentence for its class.
func UserMessage(err error) string {
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		return refusal.Text
	}
	if b, ok := errors.AsType[*busyError](err); ok {
		return b.text
	}
	_, sentence := ClassifyError(err)
	return "OpenSearch does not answer: " + sentence
}
