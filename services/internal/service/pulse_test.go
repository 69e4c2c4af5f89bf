package service

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tcpRelay forwards connections to a server. It can discard all further data of the open connections without closing
// them, like a broken machine on the network path.
type tcpRelay struct {
	url    string
	epoch  atomic.Int32
	opened atomic.Int32
}

func newTCPRelay(t *testing.T, target string) *tcpRelay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := &tcpRelay{url: "nats://" + listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			epoch := r.epoch.Load()
			r.opened.Add(1)
			go r.carry(epoch, server, client)
			go r.carry(epoch, client, server)
		}
	}()
	return r
}

func (r *tcpRelay) carry(epoch int32, to io.WriteCloser, from io.Reader) {
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		if r.epoch.Load() != epoch {
			if err != nil {
				return
			}
			continue
		}
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func TestSilentNATSConnectionIsReplaced(t *testing.T) {
	bus := startNATS(t, -1, nil)
	r := newTCPRelay(t, bus.Addr().String())
	tr := runService(t, r.url, nothing)
	tr.mustBecomeReady(t)
	begun := time.Now()
	r.epoch.Add(1)
	eventually(t, func() error {
		if r.opened.Load() < 2 {
			return errors.New("no other connection was tried")
		}
		return nil
	})
	tr.mustBecomeReady(t)
	t.Logf("connection replaced after %s", time.Since(begun).Round(100*time.Millisecond))
}

// TestServerWithSilentJetStreamIsLeft connects to a server that answers pings but no JetStream requests. The
// service must reconnect to the other server.
func TestServerWithSilentJetStreamIsLeft(t *testing.T) {
	alone := startNATS(t, -1, nil)
	better := startNATS(t, -1, nil)
	tr := runService(t, alone.ClientURL()+","+better.ClientURL(), nothing)
	tr.mustBecomeReady(t)
	if alone.NumClients() == 0 {
		alone, better = better, alone
	}
	if err := alone.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if better.NumClients() == 0 {
			return errors.New("the service stays where JetStream is silent")
		}
		return nil
	})
	tr.mustBecomeReady(t)
}

func TestServiceIsNotReadyWhileJetStreamIsSilent(t *testing.T) {
	bus := startNATS(t, -1, nil)
	tr := runService(t, bus.ClientURL(), nothing)
	tr.mustBecomeReady(t)
	if err := bus.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if status, text := tr.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, "jetstream: has not answered for ") {
			return fmt.Errorf("readyz is %d %s", status, text)
		}
		return nil
	})
	if status, text := tr.get("/healthz"); status != http.StatusOK {
		t.Errorf("healthz is %d %s", status, text)
	}
}
