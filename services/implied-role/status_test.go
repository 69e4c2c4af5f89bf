package impliedrole

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
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
			status := statusOf(state.Rule{Value: &rolev1alpha1.ImpliedRoles{}}, infer.Status{
				Parent: infer.Role{Name: "a"}, Accepted: infer.Condition{OK: true, Reason: infer.Accepted},
			}, l)
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
			if got := status.Conditions[0].Message; c.all != (got == "") || !c.all && !strings.HasPrefix(got, fmt.Sprint(l.more)+" further") {
				t.Errorf("it says %q of %d", got, l.more)
			}
			if status.Conditions[0].Status != metav1.ConditionTrue {
				t.Errorf("condition %+v", status.Conditions[0])
			}
		})
	}
}

func TestWhatTheBusNeverSaysIsForgotten(t *testing.T) {
	s := newSpaces()
	for i := range maxWrote + 1 {
		s.write(event.Change{Key: event.Key{Namespace: "ns", Name: fmt.Sprint(i)}, UID: "u", Deleted: true})
	}
	s.touch("ns", dirt{rules: true})
	if s.finish("ns", false); len(s.all["ns"].wrote) != 0 || s.all["ns"].clean() {
		t.Errorf("%d are kept", len(s.all["ns"].wrote))
	}
}

func TestTroublesOfManyBindingsAreToldOnce(t *testing.T) {
	s := newSpaces()
	found := map[string]finding{}
	for i := range 100 {
		trouble := infer.Obstacle{Parent: infer.Role{Name: "a"}, Child: infer.Role{Name: "b"}, Reason: infer.Pending, Message: fmt.Sprintf("%03d", i)}
		other := trouble
		other.Reason = infer.Forbidden
		found[fmt.Sprint("B", i)] = finding{troubles: []infer.Obstacle{other, trouble}}
	}
	if !s.settle("ns", found) {
		t.Error("they are new")
	}
	got := s.troubles("ns")
	if len(got) != 2 || got[0].Reason != infer.Forbidden || got[0].Message != "000" || got[1].Message != "000" {
		t.Errorf("got %v", got)
	}
}
