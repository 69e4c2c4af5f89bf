package review

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/truncate"
)

// maxText bounds each text of an answer, in bytes.
const maxText = 500

// Answer is the status of a review. Neither allowed nor denied means no opinion, and the API server tries the next
// authorizer.
type Answer struct {
	Allowed bool `json:"allowed"`
	Denied  bool `json:"denied,omitzero"`
	// Reason is shown to the user.
	Reason string `json:"reason,omitzero"`
	// EvaluationError is the reason for which no opinion is possible.
	EvaluationError string `json:"evaluationError,omitzero"`
}

// Encode returns the JSON of an answer in the given API version.
func (a Answer) Encode(version string) ([]byte, error) {
	a.Reason, a.EvaluationError = truncate.Text(a.Reason, maxText), truncate.Text(a.EvaluationError, maxText)
	return json.Marshal(struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Metadata   struct{} `json:"metadata"`
		Spec       struct{} `json:"spec"`
		Status     Answer   `json:"status"`
	}{Kind: kind, APIVersion: version, Status: a})
}

// AllowedAnswer returns a yes whose reason describes the proof.
func AllowedAnswer(why authz.Proof) Answer {
	if why.Binding.Name == "" {
		return Answer{Allowed: true, Reason: "allowed by a PolicyBinding"}
	}
	return Answer{Allowed: true, Reason: fmt.Sprintf("allowed by PolicyBinding %q: %s has Role %q on %s",
		why.Binding, principalText(why.Principal), why.Role, scopeText(why.At))}
}

// MissingPermissionAnswer returns a no whose reason names the missing permission. It reveals nothing about the rights
// of others.
func MissingPermissionAnswer(permission string) Answer {
	return Answer{Reason: fmt.Sprintf("missing permission %q", permission)}
}

// NoOpinionAnswer returns no opinion with the error as the reason.
func NoOpinionAnswer(err error) Answer {
	return Answer{EvaluationError: err.Error(), Reason: err.Error()}
}

func principalText(p authz.Principal) string {
	switch p.Kind {
	case authz.CoreServiceAccount:
		return fmt.Sprintf("ServiceAccount with UID %q", p.UID)
	case authz.ServiceAccount:
		return fmt.Sprintf("ServiceAccount %q", p.Ref)
	case authz.Group, authz.TokenGroup:
		return fmt.Sprintf("Group %q", p.Ref)
	case authz.User:
	}
	return fmt.Sprintf("User %q", p.Ref)
}

func scopeText(p authz.Scope) string {
	if p.All {
		return "every " + p.Type
	}
	return fmt.Sprintf("%s %q", p.Type, p.Ref)
}
