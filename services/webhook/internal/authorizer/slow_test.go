package authorizer

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener within the process, on loopback as far as it says.
type pipes struct {
	net.Listener
	conns chan net.Conn
}

func (p *pipes) Accept() (net.Conn, error) {
	conn, open := <-p.conns
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (p *pipes) Close() error   { close(p.conns); return nil }

// send begins a request on a connection of its own.
func (p *pipes) send(t *testing.T, text string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	p.conns <- server
	if _, err := io.WriteString(client, text); err != nil {
		t.Fatal(err)
	}
	return client
}

const head = "POST " + core + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"

func TestWhoSendsSlowlyIsCutOffAndHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{conns: make(chan net.Conn)}
		s, err := New(Config{Listener: listener}, (&fake{allowed: true}).options())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		began := time.Now()
		var slow []net.Conn
		for range 20 {
			slow = append(slow, listener.send(t, head), listener.send(t, head+"Content-Length: 1000\r\n\r\n{"))
		}
		quick := listener.send(t, head+"Content-Length: 0\r\n\r\n")
		if answer, err := io.ReadAll(quick); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") || time.Since(began) > 0 {
			t.Errorf("who is quick is answered %q, %v, after %s", answer, err, time.Since(began))
		}
		for _, conn := range slow {
			answer, err := io.ReadAll(conn)
			if err != nil || strings.Contains(string(answer), "200 OK") || time.Since(began) > readTimeout {
				t.Errorf("who is slow is answered %q, %v, after %s", answer, err, time.Since(began))
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
