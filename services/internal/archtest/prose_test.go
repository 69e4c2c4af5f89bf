package archtest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// measures lists the measures of comments and names in product files, in the order of the columns of
// testdata/ceilings.txt. Lower is better for each.
func measures() []string {
	return []string{"is-are", "headless", "somebody", "software-says", "one-word", "not-predicate", "opener", "phrase", "long"}
}

var (
	declaration = regexp.MustCompile(`^func (?:\([^)]*\) )?([A-Za-z_]\w*)(?:\[[^\]]*\])?\(`)
	oneWord     = regexp.MustCompile(`^[a-z]+$`)
	returnsBool = regexp.MustCompile(`\)\s*(?:\(\s*(?:\w+\s+)?bool\s*\)|bool)\s*\{`)
	predicate   = regexp.MustCompile(`^(?:(?i:is|has|can|should|needs?|contains?|match(es)?|equals?|allow(s|ed)?|support(s|ed)?|exists?|valid|` +
		`must|may|include(s|d)?|enabled?|before|after|less)|(?i:in)[A-Za-z])`)
	isAre    = regexp.MustCompile(`^\w+ (is|are)\b`)
	headless = regexp.MustCompile(`(?:^|[.:;,] )(?:[Ww]ho|[Ww]hat|[Ww]hoever|[Ww]hose|[Oo]f (?:whom|what|which))\b|` +
		`\b(?:is|are|for|of|by|from|to) (?:who|what|whoever|whose)\b`)
	somebody     = regexp.MustCompile(`(?i)\b(?:some|no|any|every)body\b|\bwhoever\b`)
	softwareSays = regexp.MustCompile(`(?i)\b(?:tells?|told|says?|said|asks?|asked|looks?|looked|knows?|known|hears?|heard|believes?|believed)\b`)
	phrase       = regexp.MustCompile(`(?i)\b(?:anew|by then|whom|on the word of|lets go|sees to)\b`)
	opener       = regexp.MustCompile(`^(?:Of|Who|Whose|What|That|Nor|None)\b`)
	sentenceEnd  = regexp.MustCompile(`[.!?]["')]*\s+`)
	startOfPart  = regexp.MustCompile(`^(?:[-*•] |\d+\. |# |\s|\t)`)
	wordOfProse  = regexp.MustCompile(`[A-Za-z]`)
)

// countInComment returns the measures that apply to the text of a whole comment.
func countInComment() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"headless": headless, "somebody": somebody, "software-says": softwareSays, "phrase": phrase,
	}
}

const longestSentence = 25 // words

// finding is one occurrence that a measure counts.
type finding struct{ measure, at, text string }

// proseFindings returns the findings of all measures in one file.
func proseFindings(file productFile) []finding {
	var found []finding
	var comment []string // the lines of the comment above the current line, without their slashes
	for n, line := range strings.Split(file.text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "//") && !strings.HasPrefix(trimmed, "//go:") && !strings.HasPrefix(trimmed, "// +") {
			comment = append(comment, strings.TrimPrefix(trimmed, "//"))
			continue
		}
		at := fmt.Sprintf("%s:%d", file.path, n+1)
		add := func(measure, text string) { found = append(found, finding{measure, at, text}) }
		if f := declaration.FindStringSubmatch(line); f != nil {
			checkName(f[1], line, add)
			if len(comment) > 0 && isAre.MatchString(strings.TrimSpace(comment[0])) && strings.HasPrefix(strings.TrimSpace(comment[0]), f[1]+" ") {
				add("is-are", strings.TrimSpace(comment[0]))
			}
		}
		checkComment(comment, add)
		comment = nil
	}
	return found
}

// checkName adds the findings in the name of a function whose first line is line.
func checkName(name, line string, add func(measure, text string)) {
	if oneWord.MatchString(name) && name != "main" && name != "init" {
		add("one-word", name)
	}
	if returnsBool.MatchString(line) && !predicate.MatchString(name) {
		add("not-predicate", name)
	}
}

// checkComment adds the findings in a comment.
func checkComment(lines []string, add func(measure, text string)) {
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.TrimSpace(line)
	}
	text := strings.Join(trimmed, " ")
	for measure, pattern := range countInComment() {
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			add(measure, text[max(0, at[0]-20):min(len(text), at[1]+20)])
		}
	}
	for _, sentence := range sentences(lines) {
		if opener.MatchString(sentence) {
			add("opener", sentence)
		}
		words := 0
		for word := range strings.FieldsSeq(sentence) {
			if wordOfProse.MatchString(word) {
				words++
			}
		}
		if words > longestSentence {
			add("long", fmt.Sprintf("%d words: %s", words, sentence))
		}
	}
}

// sentences splits a comment at full stops, at empty lines and at list items. It omits code blocks.
func sentences(lines []string) []string {
	var all []string
	part := ""
	end := func() {
		for _, s := range sentenceEnd.Split(part, -1) {
			if s != "" {
				all = append(all, s)
			}
		}
		part = ""
	}
	for _, line := range append(lines, "") {
		line = strings.TrimPrefix(line, " ")
		if strings.TrimSpace(line) == "" || startOfPart.MatchString(line) {
			end()
		}
		if code := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "   "); !code {
			part = strings.TrimSpace(part + " " + strings.TrimSpace(line))
		}
	}
	return all
}

// The ceilings may only go down: -update lowers them. To raise one, edit testdata/ceilings.txt, with the reason in the
// commit.
func TestProseStaysBelowItsCeilings(t *testing.T) {
	counts, examples := map[string]map[string]int{}, map[string]map[string][]string{}
	for _, tree := range trees() {
		counts[tree], examples[tree] = map[string]int{}, map[string][]string{}
		for _, file := range productFiles(t, filepath.Join(root, "..", tree)) {
			for _, f := range proseFindings(file) {
				counts[tree][f.measure]++
				examples[tree][f.measure] = append(examples[tree][f.measure], f.at+": "+f.text)
			}
		}
	}
	for _, broken := range compareWithCeilings(t, "testdata/ceilings.txt", measures(), counts) {
		t.Errorf("%s\n\t%s", broken, strings.Join(examples[broken.tree][broken.measure], "\n\t"))
	}
}

func TestProseFindingsOfBadSnippets(t *testing.T) {
	const good = "// listBindings returns the bindings of the namespace.\nfunc listBindings() []string {\n"
	for name, test := range map[string]struct{ text, measure string }{
		"good":                       {good, ""},
		"function that is":           {"// listBindings are the bindings.\nfunc listBindings() []string {\n", "is-are"},
		"what instead of a thing":    {"// listBindings returns the bindings, what else.\nvar x int\n", "headless"},
		"verb and what":              {"// Fence is what stops a write.\ntype Fence int\n", "headless"},
		"somebody":                   {"// Fence stops a write by somebody else.\ntype Fence int\n", "somebody"},
		"software that says":         {"// Fence says no.\ntype Fence int\n", "software-says"},
		"one word":                   {"func (s *state) own() int {\n", "one-word"},
		"bool function":              {"func (s *state) ownKey(k key) bool {\n", "not-predicate"},
		"predicate":                  {"func (s *state) hasKey(k key) bool {\n", ""},
		"predicate with a prefix in": {"func inScope() bool {\n", ""},
		"opener":                     {"// Fence stops writes. Nor does it read.\ntype Fence int\n", "opener"},
		"opener after a break":       {"// Fence stops writes:\n//\n//   - Of two, the last.\ntype Fence int\n", ""},
		"opener in a list":           {"// Fence stops writes:\n//\n// - one\n//\n// None is left.\ntype Fence int\n", "opener"},
		"phrase":                     {"// Fence stops writes and begins anew.\ntype Fence int\n", "phrase"},
		"26 words":                   {"// Fence" + strings.Repeat(" stops", 25) + ".\ntype Fence int\n", "long"},
		"25 words":                   {"// Fence" + strings.Repeat(" stops", 24) + ". It stops writes.\ntype Fence int\n", ""},
		"code":                       {"// Fence stops:\n//\n//\tfor" + strings.Repeat(" x", 30) + "\ntype Fence int\n", ""},
		"directive":                  {"//go:build somebody\npackage x\n", ""},
	} {
		var got []string
		for _, f := range proseFindings(productFile{"x.go", test.text}) {
			got = append(got, f.measure)
		}
		if strings.Join(got, " ") != test.measure {
			t.Errorf("%s: got %q, want %q", name, got, test.measure)
		}
	}
}
