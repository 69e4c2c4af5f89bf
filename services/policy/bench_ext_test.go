package policy_test

import (
	"fmt"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/spicedb"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// BenchmarkCompile compiles the bytes of a file to the outputs for both engines.
func BenchmarkCompile(b *testing.B) {
	for _, size := range []struct{ types, actions int }{{10, 100}, {100, 100}, {300, 300}, {1000, 100}} {
		for shape, text := range map[string][]byte{
			"written": policytest.LargePolicy(size.types, size.actions), "union": policytest.LargePolicyByUnion(size.types, size.actions),
		} {
			b.Run(fmt.Sprintf("bindings=%d/%s", size.types*size.actions, shape), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					compileBoth(b, text)
				}
			})
		}
	}
}

func compileBoth(b *testing.B, text []byte) {
	b.Helper()
	p, found := check.Files([]syntax.File{{Content: text}}, syntax.ParseLimits{}, policy.Options{})
	if found.HasErrors() {
		b.Fatal(found)
	}
	if _, found := spicedb.CompileSchema(p, spicedb.Options{MaxBytes: -1}); found.HasErrors() {
		b.Fatal(found)
	}
	if _, found := openfga.CompileDSL(p, openfga.Options{MaxTypes: -1, MaxBytes: 1 << 40}); found.HasErrors() {
		b.Fatal(found)
	}
	if _, found := openfga.CompileJSON(p, openfga.Options{MaxTypes: -1, MaxBytes: 1 << 40}); found.HasErrors() {
		b.Fatal(found)
	}
}
