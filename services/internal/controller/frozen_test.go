package controller_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/controller"
)

// freezableDialer makes connections that can freeze, as in a stopped process. A frozen connection carries no data and
// reports no error.
type freezableDialer struct{ frozen atomic.Bool }

// Dial implements [nats.CustomDialer].
func (f *freezableDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return freezableConn{conn, f}, err
}

type freezableConn struct {
	net.Conn
	*freezableDialer
}

func (f freezableConn) Write(p []byte) (int, error) {
	if f.frozen.Load() {
		return len(p), nil
	}
	return f.Conn.Write(p)
}

func TestFrozenLeaderIsReplaced(t *testing.T) {
	b := newTestStreams(t)
	b.snapshot(0)
	var f freezableDialer
	conn, err := nats.Connect(b.server.ClientURL(), nats.SetCustomDialer(&f), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	first := b.start(js, func(c *controller.Config) { c.Grace = time.Second })
	b.publish("a", "g", 1)
	first.becomes(t, "g", "a@1 ")
	second := b.start(b.connect())
	eventually(t, second.view.IncompleteErr)
	f.frozen.Store(true)
	began := time.Now()
	b.publish("a", "g", 2) // The frozen replica receives this message and never settles it.
	second.becomes(t, "g", "a@2 ")
	t.Logf("replaced after %s", time.Since(began).Round(100*time.Millisecond))
}
