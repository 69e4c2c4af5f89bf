//go:build integration

package opensearchsync_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// NATS is restored from a backup that holds a binding which was deleted since. No watcher runs, so no barrier shows that
// the backup is current.
func TestRestoredStreamDoesNotRestoreMapping(t *testing.T) {
	const lookFor = 10 * time.Second // After a restart with a complete view, the mapping is written within 3 s.
	b := newTestEnv(t)
	reflector := b.Reflector()
	b.connect()
	running := b.serveWith(shortenWaits)
	b.user("anna")
	b.role("watchers")
	b.bind("one", "watchers", "anna")
	b.mappedTo("watchers", "anna")
	b.state(kinds.OpenSearchBindings(), "one", "CREATED", "")
	b.NATS.Stop()
	restore := b.NATS.Backup(t)
	b.NATS.Start(t)
	b.remove(kinds.OpenSearchBindings(), "one")
	testenv.Eventually(t, soon, func() error {
		if got := b.mapped("watchers"); len(got) > 0 {
			return fmt.Errorf("mapped are %v", got)
		}
		return nil
	})
	release := reflector.Pause()
	running.Stop()
	b.NATS.Stop()
	restore()
	b.NATS.Start(t)
	b.serveWith(shortenWaits)
	for end := time.Now().Add(lookFor); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		if got := b.mapped("watchers"); slices.Contains(got, "anna") {
			t.Fatalf("mapped are %v again, by a binding that was deleted", got)
		}
	}
	release()
	reflector.WipeAndReplay()
	b.bind("two", "watchers", "anna")
	b.mappedTo("watchers", "anna")
}
