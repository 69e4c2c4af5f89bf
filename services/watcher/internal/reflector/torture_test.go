package reflector

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// This test makes random changes to a cluster, its stream and the reflectors between them. Up to three reflectors run
// at a time.
func TestReflectorConvergesUnderRandomFaults(t *testing.T) {
	for seed := range seeds.SeedRange(t, 4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			b, c := newTestNATS(t), newFakeSource()
			running := []func(){b.run(b.config(c))}
			for step := range 400 {
				name := fmt.Sprint("o", random.IntN(12))
				switch dice := random.IntN(100); {
				case dice < 55:
					c.apply(name, fmt.Sprint("v", step), "")
				case dice < 65:
					c.apply(name, "the same", fmt.Sprint(step))
				case dice < 80:
					c.remove(name)
				case dice < 84:
					c.interrupt()
				case dice < 86:
					c.forget()
				case dice < 88 && len(running) < 3:
					running = append(running, b.run(b.config(c)))
				case dice < 90 && len(running) > 0:
					running[0]()
					running = running[1:]
				case dice < 91:
					_ = b.stream(topology.Changes).Purge(t.Context())
				case dice < 92:
					_ = replace(t.Context(), b)
				case dice < 94:
					_ = occupySubject(t.Context(), b, topology.ChangeSubject(c.key(name)))
				case dice < 96:
					c.set(func(c *fakeSource) { c.down = !c.down })
				case dice < 97 && step%2 == 0:
					b.stop()
					b.start()
				default:
					<-time.After(time.Duration(random.IntN(30)) * time.Millisecond)
				}
			}
			c.set(func(c *fakeSource) { c.down = false })
			if len(running) == 0 {
				b.run(b.config(c))
			}
			for len(running) > 1 { // Two leaders would depose each other again and again.
				running[0]()
				running = running[1:]
			}
			b.settles()
			b.becomes(c)
			b.quiet()
			if err := b.equal(c); err != nil {
				t.Errorf("it did not stay so: %v", err)
			}
		})
	}
}
