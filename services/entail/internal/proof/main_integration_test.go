//go:build integration

package proof

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	storesync "github.com/entail-dev/entail/services/store-sync"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
	"github.com/entail-dev/entail/services/watcher"
)

// serviceEnv makes this test binary run one of the services, so that a service can be killed as a process.
const serviceEnv = "ENTAIL_TEST_SERVICE"

func TestMain(m *testing.M) {
	if name := os.Getenv(serviceEnv); name != "" {
		go func() { // Exit with the parent: a dead test leaves no processes.
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := run(ctx, name, serviceServers{nats: os.Getenv("T_NATS"), kubeconfig: os.Getenv("T_KUBECONFIG"), openFGA: fga.Config{Target: os.Getenv("T_OPENFGA")}})
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, name, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testenv.Main(m)
}

// serviceServers holds the servers that a service uses.
type serviceServers struct {
	nats, kubeconfig string
	openFGA          fga.Config
	embed            service.EmbedConfig
}

// run runs one service until ctx ends. It resyncs once an hour, so a resync cannot hide a fault in these tests.
func run(ctx context.Context, name string, around serviceServers) error {
	cfg := service.Defaults()
	cfg.NATS.URL, cfg.Kube.Kubeconfig, cfg.Embed = around.nats, around.kubeconfig, around.embed
	cfg.RPC.Listen, cfg.RPC.Auth = "127.0.0.1:0", rpc.AuthNone
	cfg.LogLevel, cfg.Resync = slog.LevelWarn, time.Hour
	switch name {
	case topology.Watcher:
		c := watcher.Defaults()
		c.Config = cfg
		return watcher.Run(ctx, c)
	case topology.StoreSync:
		c := storesync.Defaults()
		c.Config.Config, c.OpenFGA = cfg, around.openFGA
		return storesync.Run(ctx, c)
	default:
		c := tuplesync.Defaults()
		c.Config.Config, c.OpenFGA = cfg, around.openFGA
		return tuplesync.Run(ctx, c)
	}
}

// memoryLimit is the soft memory limit of the Go runtime for a service. The rest of 500 MiB is for its code and the
// runtime itself.
const memoryLimit = "400MiB"

// process is a service in its own process, which can be killed.
type process struct {
	t      testing.TB
	name   string
	around serviceServers
	cmd    *exec.Cmd
	log    *os.File
}

func spawn(t testing.TB, name string, around serviceServers) *process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: name, around: around, log: log}
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("log of %s:\n%s", name, text[max(0, len(text)-7000):])
		}
		_ = log.Close()
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serviceEnv+"="+p.name, "T_NATS="+p.around.nats,
		"T_KUBECONFIG="+p.around.kubeconfig, "T_OPENFGA="+p.around.openFGA.Target, "GOMEMLIMIT="+memoryLimit)
	p.cmd.Stderr = p.log
	if _, err := p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// stop ends the process with SIGTERM, and requires that it succeeds.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("%s ended with %v after SIGTERM", p.name, err)
	}
}

// memory returns the resident memory of the process in MiB: the peak and the present value.
func (p *process) memory() (peak, now float64) {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	read := func(name string) float64 {
		_, rest, _ := strings.Cut(string(status), name+":")
		var kib float64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			p.t.Fatalf("%s in %s: %v", name, status, err)
		}
		return kib / 1024
	}
	return read("VmHWM"), read("VmRSS")
}
