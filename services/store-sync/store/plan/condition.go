package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/condition"
)

// maxNamed bounds how many things one message names.
const maxNamed = 10

// known is a condition that an object has.
func known(c *metav1.Condition) condition.Condition {
	return condition.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// enumerate names the first few of names.
func enumerate(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
