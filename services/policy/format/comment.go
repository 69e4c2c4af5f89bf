package format

import (
	"errors"
	"regexp"
	"strings"
)

// Lines that end with a comment after brackets: those of a value beside its key, those of an item, any.
var (
	afterValue    = regexp.MustCompile(`(?m)^( *(?:- +)*)(\w+:) +([\[{].*[^\[{\s][ \t]*[\]}])[ \t]+(#.*)$`)
	afterItem     = regexp.MustCompile(`(?m)^( *(?:- +)*)(- +[\[{].*[^\[{\s][ \t]*[\]}])[ \t]+(#.*)$`)
	afterBrackets = regexp.MustCompile(`(?m)[^\[{\s][ \t]*[\]}][ \t]+#`)
)

// keepComments moves comments after brackets to where the library does not lose them: beside the
// key whose value it is, or before the item.
func keepComments(text string) (string, error) {
	if !afterBrackets.MatchString(text) {
		return text, nil
	}
	text = afterValue.ReplaceAllStringFunc(text, func(line string) string {
		m := afterValue.FindStringSubmatch(line)
		return m[1] + m[2] + " " + m[4] + "\n" + strings.Repeat(" ", len(m[1])+1) + m[3]
	})
	text = afterItem.ReplaceAllString(text, "$1$3\n$1$2")
	if afterBrackets.MatchString(text) {
		return "", errors.New("a comment after brackets would move")
	}
	return text, nil
}

// comments counts what may be one. A text that has fewer than before has lost one.
func comments(text string) int { return strings.Count(text, "#") }
