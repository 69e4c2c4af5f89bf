package impliedrole

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

func TestAStatusListsSomeChildrenAndTellsOfTheOthers(t *testing.T) {
	for children, all := range map[int]bool{0: true, 3: true, maxChildren: true, maxChildren + 1: false, 10_000: false} {
		var roles []infer.Role
		for i := range children {
			roles = append(roles, infer.Role{Name: fmt.Sprintf("%0253d", i), Cluster: true})
		}
		l := newChildList(roles)
		write := statusOf(state.Rule{Value: &rolev1alpha1.ImpliedRoles{}}, infer.Status{
			Parent: infer.Role{Name: "a"}, Accepted: condition.New(rolev1alpha1.Accepted, true, infer.Accepted, ""),
		}, l)
		status, ok := write.Fields.(rolev1alpha1.ImpliedRolesStatus)
		if !ok {
			t.Fatalf("fields are %T", write.Fields)
		}
		data, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 32<<10 || len(l.names) != min(children, maxChildren) || l.more == all {
			t.Errorf("of %d, %d are listed in %d bytes, and more: %v", children, len(l.names), len(data), l.more)
		}
		accepted := meta.FindStatusCondition(status.Conditions, rolev1alpha1.Accepted)
		if all != (accepted.Message == "") || accepted.Status != metav1.ConditionTrue {
			t.Errorf("of %d, it says %+v", children, accepted)
		}
	}
}
