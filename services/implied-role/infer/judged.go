package infer

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

// Reasons of the condition Judged.
const (
	JudgedByGuard = "JudgedByGuard"
	NotJudged     = "NotJudged"
)

// Judged is whether whoever wrote a rule was judged: it was written as it is after since, from when on
// everybody is; or before, or nobody is at all and since is zero. What was said of the rule before was
// written on the very state that it speaks of; so if it names the same time, what is newer was written
// later.
func Judged(rule *rolev1alpha1.ImpliedRoles, since time.Time) condition.Condition {
	before := cmp.Or(meta.FindStatusCondition(rule.Status.Conditions, rolev1alpha1.Judged), &metav1.Condition{})
	during := "; everybody is judged since " + since.Format(time.RFC3339)
	if since.IsZero() {
		during = "; nobody is judged now"
	}
	holds := !since.IsZero() && (!rule.CreationTimestamp.Time.Before(since) || strings.HasSuffix(before.Message, during))
	if before.Type != "" && before.ObservedGeneration == rule.Generation {
		holds = before.Status == metav1.ConditionTrue
	}
	if holds {
		return condition.New(rolev1alpha1.Judged, true, JudgedByGuard, "who wrote the rule was judged"+during)
	}
	return condition.New(rolev1alpha1.Judged, false, NotJudged,
		"the rule was written when nobody was judged: see who may have its child role by it, then delete it and make it again"+during)
}
