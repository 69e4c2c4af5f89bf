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

// JudgedCondition returns the condition that reports whether admission checked the author of the rule. Since is the time from
// which every author is checked. Zero means that no author is checked.
//
// The condition holds if the rule was created at since or later. For an unchanged generation, the old status stays. An
// old condition of an earlier generation that names the same since proves that the rule changed while authors were
// checked.
func JudgedCondition(rule *rolev1alpha1.ImpliedRoles, since time.Time) condition.Condition {
	before := cmp.Or(meta.FindStatusCondition(rule.Status.Conditions, rolev1alpha1.Judged), &metav1.Condition{})
	during := "; authors are checked since " + since.Format(time.RFC3339)
	if since.IsZero() {
		during = "; no author is checked now"
	}
	holds := !since.IsZero() && (!rule.CreationTimestamp.Time.Before(since) || strings.HasSuffix(before.Message, during))
	if before.Type != "" && before.ObservedGeneration == rule.Generation {
		holds = before.Status == metav1.ConditionTrue
	}
	if holds {
		return condition.New(rolev1alpha1.Judged, true, JudgedByGuard, "admission checked the author of the rule"+during)
	}
	return condition.New(rolev1alpha1.Judged, false, NotJudged,
		"the rule was written while no webhook checked its author; check which users get its child role, then delete the rule and create it again"+during)
}
