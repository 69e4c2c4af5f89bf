package iammodule

import (
	"slices"
	"sort"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// An edit of a ProtectedResource removes no live text, and does not lose its kind to a new object.
func TestEditWithoutRoomDoesNotRemoveKinds(t *testing.T) {
	edited := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "k", Generation: 2}}
	edited.Spec.ServiceRef.Name, edited.Spec.Kind, edited.Spec.Plural = "a.example", "K", "ks"
	edited.Spec.Permissions = []string{"get", "list", "added"}
	edited.Status.Registered = &iamv1alpha1.Registration{Group: "a.example", Kind: "K", Plural: "ks", Generation: 1}
	const core, text = "module core\n\ntype user\n", "module m\n\ntype doc\n  relations\n    define owner: [user]\n"
	merged := func(live string, bytes int) (doc, kind bool, reason string) {
		result, err := model.Merge(model.Module{DSL: core, Live: core}, []model.Module{
			{Origin: model.ModuleOrigin{Kind: model.IAM}, Types: iamTypesBuilder{edited}},
			{Origin: model.ModuleOrigin{Kind: model.AuthorizationModel, Name: "m"}, DSL: text, Live: live},
		}, model.Limits{Bytes: bytes})
		if err != nil {
			return false, false, err.Error()
		}
		has := func(name string) bool {
			return slices.ContainsFunc(result.Model.GetTypeDefinitions(), func(d *openfgav1.TypeDefinition) bool { return d.GetType() == name })
		}
		return has("doc"), has("a.example/K"), cachedRegistryFunc(iamTypesBuilder{edited})(result.Room).FindingFor("k").Reason
	}
	for name, test := range map[string]struct {
		live      string
		doc, kind bool
		reason    string
	}{
		"a text that is new":  {"", false, true, iamv1alpha1.IAMSystemConfigured},
		"a text that is live": {text, true, false, iamv1alpha1.LimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			enough := sort.Search(1<<16, func(bytes int) bool { doc, kind, _ := merged(test.live, bytes+1); return doc && kind }) + 1
			for bytes, want := range map[int][2]bool{enough: {true, true}, enough - 1: {test.doc, test.kind}} {
				if doc, kind, _ := merged(test.live, bytes); doc != want[0] || kind != want[1] {
					t.Errorf("in %d bytes of %d there is the text: %v, and the kind: %v", bytes, enough, doc, kind)
				}
			}
			if _, _, reason := merged(test.live, enough-1); reason != test.reason {
				t.Errorf("the kind is told %s", reason)
			}
		})
	}
}
