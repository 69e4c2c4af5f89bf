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
	// LoseTail makes NATS lose the last messages that it acknowledged, like a power cut before they were synced.
	LoseTail = "lose-tail"
	// Purge deletes all messages of the stream of changes.
	Purge = "purge"
)

func rewindFaults() []Fault {
	return []Fault{
		{Name: Restore, Weight: 2, Nodes: 1, Replicas: 1, Lasting: true, draw: drawRestore},
		{Name: LoseTail, Weight: 2, Nodes: 1, Replicas: 1, draw: drawLoseTail},
		{Name: Purge, Weight: 1, Nodes: 1, Replicas: 1, draw: drawPurge},
	}
}

// drawRestore draws a strike that takes a backup of all NATS servers. Its heal restores the backup after a rest, so every
// revocation between had settled. The watcher lives on, is killed with the consumers, or is started last.
func drawRestore(r *rand.Rand, _ SystemShape) FaultInjection {
	rewind := drawRewind(r)
	return FaultInjection{
		Text: "a backup, " + rewind.text,
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			return func() error { return rewind.restoreBackup(t) }, t.System.Backup()
		},
	}
}

// drawLoseTail draws a strike that copies the data of all NATS servers while they run. Its heal continues with this
// copy, so NATS loses what it acknowledged in between. Short tails lie between two barriers.
func drawLoseTail(r *rand.Rand, _ SystemShape) FaultInjection {
	rewind, tail := drawRewind(r), drawDuration(r, 50*time.Millisecond, 5*time.Second)
	return FaultInjection{
		Text: fmt.Sprintf("of %s, %s", tail, rewind.text), For: tail,
		Do: func(_ context.Context, t *FaultTarget) (func() error, error) {
			return func() error { return rewind.restoreBackup(t) }, t.System.BackupRunning()
		},
	}
}

// streamRewind describes how NATS continues with earlier data.
type streamRewind struct {
	// gap is the time until the consumers are killed, later the time until a watcher that is started last is started.
	gap, later time.Duration
	// watcherDown means that the watcher is killed, watcherLast that it starts after the consumers.
	watcherDown, watcherLast bool
	text                     string
}

func drawRewind(r *rand.Rand) streamRewind {
	gap, later := drawDuration(r, 0, 3*time.Second), drawDuration(r, time.Second, 6*time.Second)
	watcher := r.IntN(3)
	how := []string{"lives on", "is killed", "is started last"}[watcher]
	return streamRewind{
		gap: gap, later: later, watcherDown: watcher > 0, watcherLast: watcher == 2,
		text: fmt.Sprintf("consumers killed after %s, the watcher %s", gap, how),
	}
}

// restoreBackup restores the last backup and kills every consumer.
func (w streamRewind) restoreBackup(t *FaultTarget) error {
	watchers, consumers := t.watchersAndConsumers()
	if w.watcherDown {
		killProcesses(watchers)
	}
	if err := t.System.Restore(); err != nil {
		return err
	}
	<-time.After(w.gap)
	killProcesses(consumers)
	err := startProcesses(consumers)
	if w.watcherLast {
		<-time.After(w.later)
	}
	return errors.Join(err, startProcesses(watchers))
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
