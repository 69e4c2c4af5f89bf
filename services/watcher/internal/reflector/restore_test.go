package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// grantingReader is a consumer of the stream that grants by what its informer holds.
type grantingReader struct {
	*informer.Informer
	t     *testing.T
	table *informer.Lister[struct{}]
}

// holds reports whether the informer holds an object, complete or not.
func (r *grantingReader) holds(name string) bool {
	_, ok := r.table.Get((&fakeSource{}).key(name))
	return ok
}

// current returns nil once the informer is complete, without the revoked object.
func (r *grantingReader) current() error {
	if err := r.IncompleteErr(); err != nil {
		return err
	}
	if r.holds("revoked") || !r.holds("kept") {
		return fmt.Errorf("it holds %v", r.table.Keys())
	}
	return nil
}

// reader starts an informer on a connection of its own. Once revoked is set, the informer must not be complete with the
// revoked object.
func (b *testNATS) reader(t *testing.T, revoked *atomic.Bool) *grantingReader {
	t.Helper()
	nc, err := nats.Connect(b.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	v := informer.New(informer.Config{JS: js, Service: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	r := &grantingReader{v, t, informer.RegisterLister[struct{}](v, kinds.Stores(), nil)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = v.Run(ctx) })
	running.Go(func() { r.watch(ctx, revoked) })
	t.Cleanup(func() { cancel(); running.Wait(); nc.Close() })
	return r
}

// watch reports an error if the informer grants what was revoked.
func (r *grantingReader) watch(ctx context.Context, revoked *atomic.Bool) {
	for ctx.Err() == nil {
		if revoked.Load() && r.IncompleteErr() == nil && r.holds("revoked") && r.IncompleteErr() == nil {
			r.t.Error("the view is complete, and holds the revoked object")
			return
		}
		<-time.After(time.Millisecond)
	}
}

// backup copies the files of the server as a crash would leave them.
func (b *testNATS) backup() (dir string) {
	b.t.Helper()
	dir = b.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(b.dir)); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// restore starts the server on a backup.
func (b *testNATS) restore(backup string) {
	b.t.Helper()
	b.stop()
	b.dir = backup
	b.start()
}

// number returns the number of the newest barrier.
func (b *testNATS) number() uint64 {
	b.t.Helper()
	last, _, err := b.p.LastBarrier(b.t.Context(), "local")
	if err != nil {
		b.t.Fatal(err)
	}
	return last.GetNumber()
}

// after waits for a barrier with a higher number.
func (b *testNATS) after(number uint64) {
	b.t.Helper()
	eventually(b.t, func() error {
		if b.number() <= number {
			return errors.New("there is no further barrier")
		}
		return nil
	})
}

// TestStreamRollbackRestoresNoRevokedGrant loses messages of the stream in each way. In each case one informer
// lives on, and another starts afterwards, as a consumer does that was killed.
func TestStreamRollbackRestoresNoRevokedGrant(t *testing.T) {
	for name, test := range map[string]struct {
		// down means that the watcher starts after the consumers. purged means that the stream is purged, not restored.
		down, purged bool
		// tail means that only messages behind the last barrier are lost.
		tail bool
	}{
		"backup restored, watcher up":   {},
		"backup restored, watcher last": {down: true},
		"purged, watcher up":            {purged: true},
		"purged, watcher last":          {purged: true, down: true},
		"tail lost, watcher up":         {tail: true},
		"tail lost, watcher last":       {tail: true, down: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := newTestNATS(t), newFakeSource()
			c.apply("kept", "v1", "")
			c.apply("revoked", "v1", "")
			cfg := b.config(c)
			if test.tail {
				cfg.CheckInterval = 4 * time.Second // No barrier follows between the backup and the loss.
			}
			stop := b.run(cfg)
			var revoked atomic.Bool
			before := b.reader(t, &revoked)
			eventually(t, before.IncompleteErr)
			first := b.number()
			b.after(first)
			first = b.number()
			created := b.stream(topology.Changes).CachedInfo().Created
			backup := b.backup()
			c.remove("revoked")
			eventually(t, before.current)
			if test.tail && b.number() != first {
				t.Fatal("a barrier followed the revocation, so the stream lost more than its tail")
			}
			if !test.tail {
				b.after(first + 2)
			}
			if test.down {
				stop()
			}
			revoked.Store(true)
			if test.purged {
				if err := b.stream(topology.Changes).Purge(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				b.restore(backup)
				if now := b.stream(topology.Changes).CachedInfo().Created; !now.Equal(created) {
					t.Errorf("the restored stream was created at %s, before it was %s", now, created)
				}
			}
			after := b.reader(t, &revoked)
			if test.down {
				outgrown := []*grantingReader{after}
				if !test.purged { // A purge takes nothing from an informer that has read it.
					outgrown = append(outgrown, before)
				}
				b.outgrows(outgrown)
				b.run(cfg)
			}
			eventually(t, before.current)
			eventually(t, after.current)
			b.becomes(c)
		})
	}
}

// outgrows makes the stream grow past its former end. It waits until the informers have read it, without a barrier.
func (b *testNATS) outgrows(readers []*grantingReader) {
	b.t.Helper()
	for range 500 {
		if _, err := b.js.Publish(b.t.Context(), topology.ProbeSubject("another"), nil); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, r := range readers {
		eventually(b.t, func() error {
			if err := r.IncompleteErr(); err == nil || !strings.Contains(err.Error(), "no barrier") && !strings.Contains(err.Error(), "no snapshot") {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	}
}
