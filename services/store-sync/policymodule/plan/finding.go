package plan

import (
	"fmt"
	"strings"

	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/policy"
)

// MaxFindings bounds the findings in a status. One more gives the number of those left out.
const MaxFindings = 100

// statusFindings returns the errors of a document in the form of its status.
func (s *documentSelection) statusFindings(i int) []iaplv1alpha1.Finding {
	found := s.refused[i]
	var listed []iaplv1alpha1.Finding
	for _, d := range found[:min(len(found), MaxFindings)] {
		message := []string{d.Message}
		for _, r := range d.Related {
			message = append(message, fmt.Sprintf("%s is at %s", r.Message, s.withDocumentName(r.Place)))
		}
		listed = append(listed, iaplv1alpha1.Finding{Path: d.Path, Code: string(d.Code), Message: strings.Join(message, "; "), Hint: d.Hint})
	}
	if more := len(found) - MaxFindings; more > 0 {
		listed = append(listed, iaplv1alpha1.Finding{Code: string(policy.CodeLimit), Message: fmt.Sprintf("and %d more", more)})
	}
	return listed
}
