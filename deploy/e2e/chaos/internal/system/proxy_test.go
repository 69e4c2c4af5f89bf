package system

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo returns a proxy to a server that returns every byte.
func echo(t *testing.T) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	p, err := newProxy("test", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends a byte and waits until it returns.
func ask(conn net.Conn, within time.Duration) error {
	if _, err := conn.Write([]byte{7}); err != nil {
		return err
	}
	return hear(conn, within)
}

func hear(conn net.Conn, within time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

const (
	soon  = time.Minute
	quiet = 100 * time.Millisecond
)

func TestPausedPathDeliversLater(t *testing.T) {
	p := echo(t)
	old := dial(t, p)
	if err := ask(old, soon); err != nil {
		t.Fatal(err)
	}
	p.SetMode(Hold)
	fresh := dial(t, p)
	for name, conn := range map[string]net.Conn{"an old connection": old, "a new one": fresh} {
		if err := ask(conn, quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s on a path that holds: %v", name, err)
		}
	}
	p.SetMode(Forward)
	for name, conn := range map[string]net.Conn{"an old connection": old, "a new one": fresh} {
		if err := hear(conn, soon); err != nil {
			t.Errorf("%s on a path that forwards again: %v", name, err)
		}
	}
}

func TestCutPathRefusesConnections(t *testing.T) {
	p := echo(t)
	old := dial(t, p)
	if err := ask(old, soon); err != nil {
		t.Fatal(err)
	}
	p.SetMode(Cut)
	if err := hear(old, soon); !errors.Is(err, io.EOF) {
		t.Errorf("an old connection: %v", err)
	}
	if err := ask(dial(t, p), soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection: %v", err)
	}
	p.SetMode(Forward)
	if err := ask(dial(t, p), soon); err != nil {
		t.Errorf("after the cut: %v", err)
	}
}

func TestHalfOpenPathKeepsOldConnectionsSilent(t *testing.T) {
	p := echo(t)
	old := dial(t, p)
	if err := ask(old, soon); err != nil {
		t.Fatal(err)
	}
	p.MakeHalfOpen()
	if err := ask(old, quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an old connection: %v", err)
	}
	if err := ask(dial(t, p), soon); err != nil {
		t.Errorf("a new connection: %v", err)
	}
	p.SetMode(Cut)
	p.SetMode(Forward)
	if err := ask(old, quiet); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the old connection, after others were cut: %v", err)
	}
}
