//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// BenchmarkFirstStart measures the time until all services are ready. Each has two replicas, and three NATS servers
// start empty.
func BenchmarkFirstStart(b *testing.B) {
	root, err := filepath.Abs(checkout)
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(root, ".tmp", "chaos", b.Name())
	var total time.Duration
	for b.Loop() {
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		s, err := system.Start(b.Context(), system.Config{Checkout: root, Dir: dir, Nodes: 3, Replicas: 2})
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("after %s", s.Took)
		total += s.Took
		s.Close()
	}
	b.ReportMetric(total.Seconds()/float64(b.N), "s-to-ready")
}
