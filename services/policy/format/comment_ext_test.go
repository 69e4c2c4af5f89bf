package format_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/internal/policytest"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// addRandomComments adds comments to a text: beside lines, between them at any indentation, and in documents of their
// own. By the number of each comment, it returns the expected content of its line, or of the next line that is no
// comment.
func addRandomComments(text string, random *rand.Rand) (out string, with, above map[int]string) {
	var b strings.Builder
	with, above = map[int]string{}, map[int]string{}
	number := 0
	add := func(before string) int {
		number++
		fmt.Fprintf(&b, "%s# c%d.\n", before, number)
		return number
	}
	begun := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		content := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(content)]
		words := regexp.MustCompile(`\w+`).FindAllString(line, -1)
		for random.IntN(4) == 0 {
			if exact := random.IntN(2) == 0; !exact {
				add(strings.Repeat(" ", random.IntN(12)))
			} else if n := add(indent); begun && len(words) > 0 && content[0] != '-' && content[0] != '#' {
				above[n] = words[0]
			}
		}
		// A comment before a document stays there, whatever key comes first.
		begun = strings.HasSuffix(line, ":") || begun && line != "---"
		if b.WriteString(line); random.IntN(3) > 0 || strings.Contains(line, "#") {
			b.WriteString("\n")
			continue
		}
		switch n := add(" "); {
		case len(words) == 0:
		case strings.HasSuffix(line, "]"):
			with[n] = words[0]
		default:
			with[n] = words[len(words)-1]
		}
	}
	if random.IntN(3) == 0 {
		b.WriteString("---\n")
		add("")
	}
	return b.String(), with, above
}

// isIn reports whether a line contains a word in any case, or the final name of a key.
func isIn(line, word string) bool {
	word = strings.ReplaceAll(strings.ToLower(word), "resourcetypenames", "resourcetypes")
	return strings.Contains(strings.ToLower(line), word)
}

// canonicalPolicy returns the policy in the files, in canonical form.
func canonicalPolicy(t *testing.T, texts []string) string {
	t.Helper()
	var files []syntax.File
	for i, text := range texts {
		files = append(files, syntax.File{Name: fmt.Sprint(i), Content: []byte(text)})
	}
	p, found := check.Files(files, syntax.ParseLimits{}, policy.Options{})
	if p == nil {
		t.Fatal(found)
	}
	return string(policytest.CanonicalYAML(p))
}

func TestSourceKeepsComments(t *testing.T) {
	t.Parallel()
	for seed := range policytest.SeedRange(t, 300) {
		random := rand.New(rand.NewPCG(seed, 2))
		texts, outs := policytest.GeneratePolicy(seed), []string(nil)
		for _, text := range texts {
			text, with, above := addRandomComments(text, random)
			out, found := format.Source(syntax.File{Content: []byte(text)})
			if found.HasErrors() {
				t.Fatalf("seed %d: %v in\n%s", seed, found, text)
			}
			lines := strings.Split(string(out), "\n")
			for i, line := range lines {
				_, comment, is := strings.Cut(line, "# c")
				if !is {
					continue
				}
				var n int
				if _, err := fmt.Sscanf(comment, "%d.", &n); err != nil {
					t.Fatal(err)
				}
				if word := with[n]; word != "" && !isIn(line, word) {
					t.Fatalf("seed %d: comment %d is no more beside %q:\n%s\nof\n%s", seed, n, word, out, text)
				}
				next := i
				for strings.HasPrefix(strings.TrimLeft(lines[next], " "), "#") {
					next++
				}
				if word := above[n]; word != "" && !isIn(lines[next], word) {
					t.Fatalf("seed %d: comment %d is no more above %q:\n%s\nof\n%s", seed, n, word, out, text)
				}
			}
			if got, want := strings.Count(string(out), "# c"), strings.Count(text, "# c"); got != want {
				t.Fatalf("seed %d: %d comments of %d", seed, got, want)
			}
			if twice, found := format.Source(syntax.File{Content: out}); string(twice) != string(out) {
				t.Fatalf("seed %d: formatted\n%s\nand again\n%s%v", seed, out, twice, found)
			}
			outs = append(outs, string(out))
		}
		if is, was := canonicalPolicy(t, outs), canonicalPolicy(t, texts); is != was {
			t.Fatalf("seed %d: it says\n%s\nand said\n%s", seed, is, was)
		}
	}
}
