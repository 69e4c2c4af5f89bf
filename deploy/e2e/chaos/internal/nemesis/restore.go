package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/system"
)

// Names of blows that rewind the streams and kill every consumer.
const (
	// Restore restores a backup of NATS that is older than the last rest.
	Restore = "restore"
	// Purge deletes all messages of the stream of changes.
	Purge = "purge"
)

func rewindFaults() []Fault {
	return []Fault{
		{Name: Restore, Weight: 2, Nodes: 1, Replicas: 1, Lasting: true, draw: drawRestore},
		{Name: Purge, Weight: 1, Nodes: 1, Replicas: 1, draw: drawPurge},
	}
}

// drawRestore draws a strike that takes a backup of all NATS servers. Its heal restores the backup after a rest, so every
// revocation between had settled. The watcher lives on, is killed with the consumers, or is started last.
func drawRestore(r *rand.Rand, _ SystemShape) FaultInjection {
	gap, later := drawDuration(r, 0, 3*time.Second), drawDuration(r, time.Second, 6*time.Second)
	watcher := []string{"lives on", "is killed", "is started last"}[r.IntN(3)]
	return FaultInjection{
		Text: fmt.Sprintf("a backup, consumers killed after %s, the watcher %s", gap, watcher),
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			if err := t.System.Backup(); err != nil {
				return nil, err
			}
			return func() error {
				watchers, consumers := t.watchersAndConsumers()
				if watcher != "lives on" {
					killProcesses(watchers)
				}
				if err := t.System.Restore(); err != nil {
					return err
				}
				<-time.After(gap)
				killProcesses(consumers)
				err := startProcesses(consumers)
				if watcher == "is started last" {
					<-time.After(later)
				}
				return errors.Join(err, startProcesses(watchers))
			}, nil
		},
	}
}

func drawPurge(*rand.Rand, SystemShape) FaultInjection {
	return FaultInjection{
		Text: "all changes, consumers killed",
		Do: func(ctx context.Context, t *FaultTarget) (func() error, error) {
			attempt, cancel := context.WithTimeout(ctx, callFor)
			defer cancel()
			_ = purgeChanges(attempt, t.Bus.JS) // Another blow may have stopped NATS.
			_, consumers := t.watchersAndConsumers()
			killProcesses(consumers)
			return nil, startProcesses(consumers)
		},
	}
}

func purgeChanges(ctx context.Context, js jetstream.JetStream) error {
	stream, err := js.Stream(ctx, changes)
	if err != nil {
		return err
	}
	return stream.Purge(ctx)
}

// watchersAndConsumers returns the processes of the watcher, and those of all other services.
func (t *FaultTarget) watchersAndConsumers() (watchers, consumers []*system.Process) {
	for _, r := range t.System.Services {
		if r.Service.Name == "watcher" {
			watchers = append(watchers, r.Process)
		} else {
			consumers = append(consumers, r.Process)
		}
	}
	return watchers, consumers
}

func killProcesses(all []*system.Process) {
	for _, p := range all {
		p.Kill()
	}
}
