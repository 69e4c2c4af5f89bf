package authz

import (
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// TestSetProtectedResourceRecomputesOnlyForRegistrationChange verifies that a status update computes all roles again
// only if it changes which kinds are registered. Statuses of very many kinds are updated often.
func TestSetProtectedResourceRecomputesOnlyForRegistrationChange(t *testing.T) {
	condition := func(typ, reason string) metav1.Condition {
		return metav1.Condition{Type: typ, Status: metav1.ConditionFalse, Reason: reason}
	}
	for name, c := range map[string]struct {
		change func(*iamv1alpha1.ProtectedResource)
		anew   bool
	}{
		"no change": {change: func(*iamv1alpha1.ProtectedResource) {}},
		"condition Observed": {change: func(p *iamv1alpha1.ProtectedResource) {
			p.Status.Conditions = append(p.Status.Conditions, condition(iamv1alpha1.Observed, iamv1alpha1.NotFollowed))
		}},
		"label":         {change: func(p *iamv1alpha1.ProtectedResource) { p.Labels = map[string]string{"a": "b"} }},
		"permissions":   {func(p *iamv1alpha1.ProtectedResource) { p.Spec.Permissions = []string{"list"} }, true},
		"generation":    {func(p *iamv1alpha1.ProtectedResource) { p.Generation++ }, true},
		"UID":           {func(p *iamv1alpha1.ProtectedResource) { p.UID = "another" }, true},
		"creation time": {func(p *iamv1alpha1.ProtectedResource) { p.CreationTimestamp = metav1.Unix(0, 0) }, true},
		"registration":  {func(p *iamv1alpha1.ProtectedResource) { p.Status.Registered = &iamv1alpha1.Registration{Group: "a"} }, true},
		"registration limit exceeded": {func(p *iamv1alpha1.ProtectedResource) {
			p.Status.Conditions = []metav1.Condition{condition(iamv1alpha1.Registered, iamv1alpha1.LimitExceeded)}
		}, true},
		"deletion": {func(p *iamv1alpha1.ProtectedResource) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)} }, true},
	} {
		x := New(nil)
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "trees", CreationTimestamp: metav1.Unix(1e9, 0)}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a.example", "Tree", "trees", []string{"get"}
		x.SetProtectedResource("trees", p)
		before, is := x.Registry(), p.DeepCopy()
		c.change(is)
		x.SetProtectedResource("trees", is)
		if anew := x.Registry() != before; anew != c.anew {
			t.Errorf("%s: got recomputed %v, want %v", name, anew, c.anew)
		}
	}
}

// TestIsBelowTypeVisitsEachKindOnce gives each kind two parents on each of sixty levels. There are 2^60
// paths, so the search must visit each kind once.
func TestIsBelowTypeVisitsEachKindOnce(t *testing.T) {
	const levels = 60
	x := New(nil)
	x.BulkLoad(func() {
		for level := range levels {
			for _, side := range []string{"Left", "Right"} {
				p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: side + strconv.Itoa(level)}}
				p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural = "a.example", p.Name, strings.ToLower(p.Name)
				if level > 0 {
					above := strconv.Itoa(level - 1)
					p.Spec.ParentResources = []iamv1alpha1.ParentResourceRef{
						{APIGroup: "a.example", Kind: "Left" + above}, {APIGroup: "a.example", Kind: "Right" + above},
					}
				}
				x.SetProtectedResource(p.Name, p)
			}
		}
	})
	lowest, found := x.kinds["a.example/Left59"], make(chan bool)
	go func() {
		found <- lowest.isBelowType("a.example/Right0") && !lowest.isBelowType("a.example/Left59") && !lowest.isBelowType("a.example/Nothing")
	}()
	select {
	case is := <-found:
		if !is {
			t.Error("isBelow disagrees with the declared parents")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("isBelow did not return within 10 seconds; it visits every path")
	}
}
