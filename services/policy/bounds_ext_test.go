package policy_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// repeatToFileLimit repeats a text up to the largest size of files.
func repeatToFileLimit(text string) string { return strings.Repeat(text, (32<<20)/len(text)-1) }

func aliasBomb() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 20 {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return text
}

func deepKeys() string {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// policyWithManyActions returns a policy with n actions on a union of n types.
func policyWithManyActions(n int) string { return string(policytest.LargePolicyByUnion(n, n)) }

// hostileInput is input that is designed to cost time or memory, with the expected code.
type hostileInput struct {
	text string
	want policy.Code
}

func TestHostileInputIsBounded(t *testing.T) {
	for name, test := range map[string]hostileInput{
		"a file of 100 MB":         {strings.Repeat("actions: []\n", 9<<20), policy.CodeLimit},
		"an alias bomb":            {aliasBomb(), policy.CodeLimit},
		"an alias of itself":       {"a: &a [*a]\n", policy.CodeLimit},
		"a million tiny documents": {strings.Repeat("---\na: b\n", 1_000_000), policy.CodeLimit},
		"millions of marks":        {repeatToFileLimit("---\n"), policy.CodeLimit},
		"deep brackets":            {strings.Repeat("[", 4<<20), policy.CodeSyntax},
		"deep brackets, closed":    {strings.Repeat("[", 9000) + strings.Repeat("]", 9000), policy.CodeLimit},
		"deep dashes":              {repeatToFileLimit("- "), policy.CodeLimit},
		"deep keys":                {deepKeys(), policy.CodeLimit},
		"deep mappings":            {strings.Repeat("{a: ", 1<<20), policy.CodeSyntax},
		"flow style of 32 MiB":     {repeatToFileLimit("[],"), policy.CodeLimit},
		"one long line":            {repeatToFileLimit("a"), policy.CodeLimit},
		"one long text":            {"a: " + strings.Repeat("b", 31<<20), policy.CodeUnknownKey},
		"one long quoted text":     {`a: "` + repeatToFileLimit("b"), policy.CodeLimit},
		"tabs":                     {repeatToFileLimit("\t"), policy.CodeEmpty},
		"zeroes":                   {repeatToFileLimit("\x00"), policy.CodeLimit},
		"zeroes, fewer":            {strings.Repeat("\x00", 1<<20), policy.CodeEncoding},
		"unions that multiply":     {policyWithManyActions(1200), policy.CodeLimit},
		"relations that multiply":  {string(policytest.LargePolicyByUnion(3000, 1)), policy.CodeLimit},
		"comments":                 {repeatToFileLimit("# \n"), policy.CodeEmpty},
		"comments and little else": {"actions: [\n" + strings.Repeat("# x\n- a # b\n", 300_000), policy.CodeSyntax},
	} {
		t.Run(name, func(t *testing.T) { testHostile(t, test) })
	}
}

// testHostile has limits far above the measured values, because of the race detector. Measured are one to two seconds,
// and at most 700 MiB in total.
func testHostile(t *testing.T, test hostileInput) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan policy.Diagnostics, 1)
	go func() {
		p, found := check.Files([]syntax.File{{Name: "hostile.yaml", Content: []byte(test.text)}}, syntax.ParseLimits{}, policy.Options{})
		if p != nil {
			found = nil
		}
		done <- found
	}()
	select {
	case <-ctx.Done():
		t.Fatal("it takes too long")
	case found := <-done:
		if !hasCode(found, test.want) {
			t.Errorf("no %s among %d findings, the first: %v", test.want, len(found), found[:min(len(found), 3)])
		}
	}
	runtime.ReadMemStats(&after)
	if megabytes := (after.TotalAlloc - before.TotalAlloc) >> 20; megabytes > 1000 {
		t.Errorf("it allocates %d MiB", megabytes)
	}
}

func hasCode(found policy.Diagnostics, code policy.Code) bool {
	for _, d := range found {
		if d.Code == code {
			return true
		}
	}
	return false
}
