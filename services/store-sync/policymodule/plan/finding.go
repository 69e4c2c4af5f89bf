package plan

import (
	"fmt"
	"strings"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/policy"
)

// maxFindings bounds what a status lists.
const maxFindings = 100

// findings are the errors of a document as its status tells them.
func (c *choice) findings(i int) []iaplv1alpha1.Finding {
	found := c.refused[i]
	var told []iaplv1alpha1.Finding
	for _, d := range found[:min(len(found), maxFindings)] {
		message := []string{d.Message}
		for _, r := range d.Related {
			message = append(message, fmt.Sprintf("%s is at %s", r.Message, c.named(r.Place)))
		}
		told = append(told, iaplv1alpha1.Finding{Path: d.Path, Code: string(d.Code), Message: strings.Join(message, "; "), Hint: d.Hint})
	}
	if more := len(found) - maxFindings; more > 0 {
		told = append(told, iaplv1alpha1.Finding{Code: string(policy.CodeLimit), Message: fmt.Sprintf("and %d more", more)})
	}
	return told
}
