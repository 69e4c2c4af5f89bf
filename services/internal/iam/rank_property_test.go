//go:build !race

// The race detector is excluded: the test uses one goroutine, and would take minutes with it.

package iam

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/seeds"
)

// ProtectedResources are created, edited and deleted in random order. Some statuses are not written, as after a crash.
// A resource that is not edited must lose nothing to another one. No two statuses may contradict each other, and the
// input order must not matter.
func TestRegistryKeepsUneditedResources(t *testing.T) {
	for seed := range seeds.SeedRange(t, 400) {
		random := rand.New(rand.NewPCG(seed, seed))
		claims := func(p *iamv1alpha1.ProtectedResource) {
			plurals := []string{collidingPlural, collidedPlural, "ones", "twos"}
			kinds := []string{"A", "B", "C", "D"}
			p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural = "a.example", kinds[random.IntN(4)], plurals[random.IntN(4)]
			p.Spec.Permissions = [][]string{{"get"}, {"list"}, {"get", "list"}}[random.IntN(3)]
			p.Spec.ParentResources = nil
			for range random.IntN(3) {
				p.Spec.ParentResources = append(p.Spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: "a.example", Kind: kinds[random.IntN(4)]})
			}
		}
		var all []*iamv1alpha1.ProtectedResource
		for step := range 60 {
			switch at := random.IntN(max(1, len(all))); {
			case random.IntN(4) == 0 && len(all) < 6:
				p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprint("p", step), Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(random.Int64N(9), 0)),
				}}
				claims(p)
				all = append(all, p)
			case len(all) == 0:
			case random.IntN(8) == 0:
				all = slices.Delete(all, at, at+1)
			case random.IntN(2) == 0:
				claims(all[at])
				all[at].Generation++
			default:
				r := RegistryWithinBudget(all, ModelBudget{1000, 1 << 20})
				checkHeld(t, r, all)
				if again := RegistryWithinBudget(shuffled(random, all), ModelBudget{1000, 1 << 20}); TypesDigest(r.TypeDefinitions()) != TypesDigest(again.TypeDefinitions()) || TypesDigest(r.TypeDefinitions()) != TypesDigest(NewRegistry(all).TypeDefinitions()) {
					t.Fatalf("world %d: another order is another registry", seed)
				}
				for _, p := range shuffled(random, all)[:random.IntN(len(all)+1)] {
					p.Status.Registered = r.FindingFor(p.Name).Registration
				}
				checkRecords(t, all)
			}
			if t.Failed() {
				t.Fatalf("in world %d, step %d", seed, step)
			}
		}
	}
}
