//go:build integration && !race

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
)

// numbered repeats a line with numbers whose digits are letters.
func numbered(n int, line string) string {
	var b strings.Builder
	for i := range n {
		digits := strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprintf("%06d", i))
		b.WriteString(strings.ReplaceAll(line, "#", digits))
	}
	return b.String()
}

// TestMillionsOfErrorsAreBounded is separate because the race detector makes it slow.
func TestMillionsOfErrorsAreBounded(t *testing.T) {
	for name, test := range map[string]hostileInput{
		"millions of items":                {repeatToFileLimit("-\n"), policy.CodeLimit},
		"millions of keys":                 {repeatToFileLimit("a:\n"), policy.CodeLimit},
		"half a million unknown keys":      {numbered(500_000, "x#:\n"), policy.CodeUnknownKey},
		"half a million actions, all one":  {"actions:\n" + strings.Repeat("- name: get\n", 500_000), policy.CodeDupAction},
		"half a million bindings, all one": {"actionBindings:\n" + strings.Repeat("- actionName: get\n", 500_000), policy.CodeMissing},
		"a long list of targets":           {"resourceTypes:\n- name: foo\n  idPrefix: foo\n  relationships:\n  - relation: own\n    targetTypes:\n" + numbered(900_000, "    - t#\n"), policy.CodeUnknownType},
		"types times actions": {
			"resourceTypes:\n" + numbered(100_000, "- name: t#\n") + "actions:\n" + numbered(100_000, "- name: a#\n"), policy.CodeLimit,
		},
	} {
		t.Run(name, func(t *testing.T) { testHostile(t, test) })
	}
}
