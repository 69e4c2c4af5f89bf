package impliedrole

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
)

func TestAStatusListsAsManyChildrenAsTheAPIServerTakes(t *testing.T) {
	for what, c := range map[string]struct {
		children, length int
		letter           string
		all              bool
	}{
		"a few":                                  {3, 20, "x", true},
		"many":                                   {5000, 20, "x", true},
		"too many":                               {10_000, 20, "x", false},
		"too many with long names":               {10_000, 250, "x", false},
		"too many letters that grow":             {10_000, 250, "<", false},
		"too many quotes":                        {10_000, 250, `"`, false},
		"as many long ones as there is room for": {900, 250, "x", true},
	} {
		t.Run(what, func(t *testing.T) {
			var roles []infer.Role
			for i := range c.children {
				text := fmt.Sprintf("%05d", i)
				roles = append(roles, infer.Role{Name: text + strings.Repeat(c.letter, c.length-len(text))})
			}
			l := list(roles)
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
			if len(data) > 300<<10 {
				t.Errorf("it has %d bytes", len(data))
			}
			if len(l.names)+l.more != c.children || (l.more == 0) != c.all || len(l.names) == 0 {
				t.Errorf("%d are listed, and %d more", len(l.names), l.more)
			}
			accepted := meta.FindStatusCondition(status.Conditions, rolev1alpha1.Accepted)
			if got := accepted.Message; c.all != (got == "") || !c.all && !strings.HasPrefix(got, fmt.Sprint(l.more)+" further") {
				t.Errorf("it says %q of %d", got, l.more)
			}
			if accepted.Status != metav1.ConditionTrue {
				t.Errorf("condition %+v", accepted)
			}
		})
	}
}
