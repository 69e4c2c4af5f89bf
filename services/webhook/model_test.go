package webhook

import (
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

func registryOf(kinds ...string) *iam.Registry {
	var all []*iamv1alpha1.ProtectedResource
	for _, kind := range kinds {
		p := &iamv1alpha1.ProtectedResource{}
		p.Name, p.Spec = kind, iamv1alpha1.ProtectedResourceSpec{
			ServiceRef: iamv1alpha1.ServiceReference{Name: "a.example"}, Kind: kind, Plural: strings.ToLower(kind) + "s", Permissions: []string{"get"},
		}
		all = append(all, p)
	}
	return iam.NewRegistry(all)
}

// TestIsMadeFromRegistry verifies that a model with a deleted kind is not in step, whatever the
// status of the Store contains.
func TestIsMadeFromRegistry(t *testing.T) {
	live := []corev1alpha1.ModuleStatus{{Source: "store/iam"}, {Source: "iam", Digest: iam.TypesDigest(registryOf("Disk", "Widget").TypeDefinitions())}}
	for name, c := range map[string]struct {
		modules []corev1alpha1.ModuleStatus
		kinds   []string
		want    bool
	}{
		"the same":          {live, []string{"Widget", "Disk"}, true},
		"one is deleted":    {live, []string{"Widget"}, false},
		"all are deleted":   {live, nil, false},
		"one is new":        {live, []string{"Widget", "Disk", "Host"}, false},
		"there are none":    {live[:1], nil, true},
		"the first is new":  {live[:1], []string{"Widget"}, false},
		"nothing is merged": {nil, []string{"Widget"}, false},
	} {
		if got := isMadeFromRegistry(c.modules, registryOf(c.kinds...)); got != c.want {
			t.Errorf("%s: got in step %v", name, got)
		}
	}
}
