// Package report writes what was found in a policy: for people, for programs, and in SARIF for
// what shows findings beside the code they are about.
package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/entail-dev/entail/services/policy"
)

// Text is one finding a line, with what to do and other places below it.
func Text(found policy.Diagnostics) string {
	var b strings.Builder
	for _, d := range found {
		fmt.Fprintf(&b, "%s\n", d)
		for _, related := range d.Related {
			fmt.Fprintf(&b, "    %s: %s\n", related.Place, related.Message)
		}
		fmt.Fprintf(&b, "    hint: %s\n", d.Hint)
	}
	return b.String()
}

// JSON is an array of findings.
func JSON(found policy.Diagnostics) ([]byte, error) {
	if found == nil {
		found = policy.Diagnostics{}
	}
	return marshal(found)
}

func marshal(v any) ([]byte, error) {
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing findings: %w", err)
	}
	return append(out, '\n'), nil
}
