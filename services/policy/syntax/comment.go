package syntax

import "strings"

// ownerFromComment returns the owner that a comment at the beginning of a document names: "# Provided by NAME".
func ownerFromComment(text string) string {
	const phrase = "provided by "
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		comment, found := strings.CutPrefix(line, "#")
		if !found && line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "%") {
			break
		}
		comment = strings.TrimSpace(comment)
		if len(comment) > len(phrase) && strings.EqualFold(comment[:len(phrase)], phrase) {
			return strings.TrimSpace(comment[len(phrase):])
		}
	}
	return ""
}
