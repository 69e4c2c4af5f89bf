package authz

import (
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// What statuses say of kinds has all roles worked out anew only where that decides which kinds there are: it may change with every
// word of the watcher, of very many kinds.
func TestOnlyWhatRegistersAKindHasAllWorkedOutAnew(t *testing.T) {
	condition := func(typ, reason string) metav1.Condition {
		return metav1.Condition{Type: typ, Status: metav1.ConditionFalse, Reason: reason}
	}
	for name, c := range map[string]struct {
		change func(*iamv1alpha1.ProtectedResource)
		anew   bool
	}{
		"nothing": {change: func(*iamv1alpha1.ProtectedResource) {}},
		"its objects are not known": {change: func(p *iamv1alpha1.ProtectedResource) {
			p.Status.Conditions = append(p.Status.Conditions, condition(iamv1alpha1.Observed, iamv1alpha1.NotFollowed))
		}},
		"its label":       {change: func(p *iamv1alpha1.ProtectedResource) { p.Labels = map[string]string{"a": "b"} }},
		"its permissions": {func(p *iamv1alpha1.ProtectedResource) { p.Spec.Permissions = []string{"list"} }, true},
		"its generation":  {func(p *iamv1alpha1.ProtectedResource) { p.Generation++ }, true},
		"it is another":   {func(p *iamv1alpha1.ProtectedResource) { p.UID = "another" }, true},
		"it is older":     {func(p *iamv1alpha1.ProtectedResource) { p.CreationTimestamp = metav1.Unix(0, 0) }, true},
		"what is its own": {func(p *iamv1alpha1.ProtectedResource) { p.Status.Registered = &iamv1alpha1.Registration{Group: "a"} }, true},
		"there is no room for it": {func(p *iamv1alpha1.ProtectedResource) {
			p.Status.Conditions = []metav1.Condition{condition(iamv1alpha1.Registered, iamv1alpha1.LimitExceeded)}
		}, true},
		"it goes": {func(p *iamv1alpha1.ProtectedResource) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)} }, true},
	} {
		x := New(nil)
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "trees", CreationTimestamp: metav1.Unix(1e9, 0)}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a.example", "Tree", "trees", []string{"get"}
		x.SetProtectedResource("trees", p)
		before, is := x.Registry(), p.DeepCopy()
		c.change(is)
		x.SetProtectedResource("trees", is)
		if anew := x.Registry() != before; anew != c.anew {
			t.Errorf("%s: worked out anew: %v", name, anew)
		}
	}
}

// Each kind may have two parents, level upon level: up sixty levels there are more ways than anybody can go.
func TestWhatIsAboveAKindIsFoundHoweverManyWaysLeadUp(t *testing.T) {
	const levels = 60
	x := New(nil)
	x.Load(func() {
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
		found <- lowest.isBelow("a.example/Right0") && !lowest.isBelow("a.example/Left59") && !lowest.isBelow("a.example/Nothing")
	}()
	select {
	case is := <-found:
		if !is {
			t.Error("something else is above a kind than was said")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes every way up")
	}
}
