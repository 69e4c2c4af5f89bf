package nemesis

import (
	"context"
	"math/rand/v2"
)

// Strip force-deletes an object: it removes the finalizers, and creates another object of the same name.
const Strip = "strip"

func objectFaults() []Fault {
	return []Fault{{Name: Strip, Weight: 2, Nodes: 1, Replicas: 1, draw: drawStrip}}
}

func drawStrip(*rand.Rand, SystemShape) FaultInjection {
	return FaultInjection{Text: "an object", Do: func(ctx context.Context, t *FaultTarget) (func() error, error) {
		o := t.Force()
		t.Before(o)
		return nil, t.Driver.Execute(ctx, o)
	}}
}
