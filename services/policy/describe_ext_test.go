package policy_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/policy"
)

func TestEveryCodeIsDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []policy.Code
	for _, m := range regexp.MustCompile(`Code = "(.*)"`).FindAllSubmatch(text, -1) {
		codes = append(codes, policy.Code(m[1]))
	}
	slices.Sort(codes)
	if !slices.Equal(codes, policy.AllCodes()) {
		t.Errorf("there are %q, described are %q", codes, policy.AllCodes())
	}
}
