//go:build integration

package impliedrole_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

// natsEnv and kubeEnv make this test binary the service, so that it can be killed.
const (
	natsEnv = "ENTAIL_TEST_SERVICE_NATS"
	kubeEnv = "ENTAIL_TEST_SERVICE_KUBECONFIG"
)

func TestMain(m *testing.M) {
	if os.Getenv(natsEnv) == "" {
		testbed.Main(m)
		return
	}
	go func() { // Its end is ours: a test that dies leaves nothing behind.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	cfg := impliedrole.Defaults()
	cfg.NATS.URL, cfg.Kube.Kubeconfig = os.Getenv(natsEnv), os.Getenv(kubeEnv)
	cfg.RPC.Listen, cfg.RPC.Auth = "127.0.0.1:0", rpc.None
	cfg.LogLevel, cfg.Resync, cfg.WithoutGuard = slog.LevelWarn, time.Hour, true
	if err := impliedrole.Run(context.Background(), cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is the service as a process of its own.
type process struct{ *exec.Cmd }

func (b *bed) spawn() process {
	b.T.Helper()
	p := process{exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), natsEnv+"="+b.NATS.URLOf(topology.ImpliedRole), kubeEnv+"="+b.Kube.Kubeconfig(topology.ImpliedRole))
	p.Stderr = b.T.Output()
	if _, err := p.StdinPipe(); err != nil {
		b.T.Fatal(err)
	}
	if err := p.Start(); err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(p.kill)
	return p
}

// kill is kill -9.
func (p process) kill() {
	_ = p.Process.Kill() // Fails when it has ended.
	_ = p.Wait()
}

// TestAKilledServiceLeavesNothingBehind kills the service at any moment, between a change
// and its acknowledgement too, while things go on happening.
func TestAKilledServiceLeavesNothingBehind(t *testing.T) {
	b := newBed(t)
	m := b.Reflector()
	b.do("a>b b>c d>c c>ClusterRole/e B0=a{x} B1=b{y} B2=d{x,z}")
	p := b.spawn()
	testbed.Eventually(t, 2*soon, b.consistent)
	recorder := b.recorder()
	for range 8 {
		w := recorder.open()
		for range 12 {
			w.happen()
			<-time.After(rand.N(30 * time.Millisecond))
		}
		p.kill()
		for range 3 {
			w.happen()
		}
		p = b.spawn()
		for range 5 {
			w.happen()
		}
		testbed.Eventually(t, 2*soon, b.consistent)
		w.close()
	}
	p.kill()
	b.Quiet("the next start, and a replay", func() {
		b.serve()
		b.Settled()
		m.Replay()
	})
}
