//go:build integration

package impliedrole_test

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/infer"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// TestPeopleAreToldOnceThatARuleIsAtFault makes faulty rules, forces a resync, and expects one Event per fault.
func TestPeopleAreToldOnceThatARuleIsAtFault(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serveWith(func(c *impliedrole.Config) {
		c.Policy.MaxGenerated, c.Policy.Prohibited = 1, append(c.Policy.Prohibited, "never-*")
	})
	b.do("a>b x>never-y m>n M1=m{u} M2=m{v}")
	b.condition("m>n", rolev1alpha1.Synced, infer.TooManyBindings)
	b.do("b>a")
	b.condition("b>a", rolev1alpha1.Acyclic, infer.InCycle)
	want := map[string]int{"InCycle a.to.b": 1, "InCycle b.to.a": 1, "ProhibitedRole x.to.never-y": 1, "TooManyBindings m.to.n": 1}
	told := func() error {
		got := b.told()
		if !maps.Equal(got, want) {
			return fmt.Errorf("got events %v, want %v", got, want)
		}
		return nil
	}
	testenv.Eventually(t, soon, told)
	b.Resync(topology.ImpliedRole)
	b.do("k>l b>c") // The text of the cycle changes, but a cycle it remains.
	b.condition("k>l", rolev1alpha1.Synced, infer.Synced)
	b.Settled()
	if err := told(); err != nil {
		t.Error(err)
	}
}

// told counts the Events about existing rules.
func (b *bed) told() map[string]int {
	b.T.Helper()
	events, err := b.typed.CoreV1().Events(b.namespace).List(b.T.Context(), metav1.ListOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	all := map[string]int{}
	for _, r := range b.allRules() {
		for _, e := range events.Items {
			if e.InvolvedObject.UID == r.UID {
				all[e.Reason+" "+r.Name]++
			}
		}
	}
	return all
}
