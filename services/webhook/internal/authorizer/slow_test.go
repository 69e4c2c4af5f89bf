package authorizer

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener within the process, with a loopback address.
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

// send begins a request on a new connection.
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

func TestSlowClientIsDisconnected(t *testing.T) {
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
			t.Errorf("fast client: got %q, %v after %s", answer, err, time.Since(began))
		}
		for _, conn := range slow {
			answer, err := io.ReadAll(conn)
			if err != nil || strings.Contains(string(answer), "200 OK") || time.Since(began) > readTimeout {
				t.Errorf("slow client: got %q, %v after %s", answer, err, time.Since(began))
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestSlowRequestOnSharedConnectionIsCanceled sends slowly on the single connection of the API
// server. The slow request is cut off, and the others are not delayed.
func TestSlowRequestOnSharedConnectionIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, authority, dir := &pipes{conns: make(chan net.Conn)}, newAuthority(t), t.TempDir()
		cfg := Config{Listener: listener, Certificate: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
		cert, key := authority.sign(t, "server")
		write(t, cfg.Certificate, cert)
		write(t, cfg.Key, key)
		s, err := New(cfg, (&fake{allowed: true}).options())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		connections := 0
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: authority.pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				listener.conns <- server
				connections++
				return client, nil
			},
		}
		send := func(body io.Reader) (code int, took time.Duration) {
			began := time.Now()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://127.0.0.1"+core, body)
			if err != nil {
				t.Error(err)
				return 0, 0
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := transport.RoundTrip(r)
			if err != nil {
				return 0, time.Since(began)
			}
			if answer.ProtoMajor != 2 {
				t.Errorf("got protocol %s, want HTTP/2", answer.Proto)
			}
			_ = answer.Body.Close()
			return answer.StatusCode, time.Since(began)
		}
		if code, _ := send(strings.NewReader(asked)); code != http.StatusOK {
			t.Fatalf("first request: got status %d", code)
		}
		var slow sync.WaitGroup
		for range 20 {
			body, writes := io.Pipe()
			slow.Go(func() {
				if code, took := send(body); code == http.StatusOK || took > readTimeout {
					t.Errorf("slow client: got %d after %s", code, took)
				}
				_ = body.Close()
			})
			go func() { _, _ = io.WriteString(writes, "{") }()
		}
		synctest.Wait()
		if code, took := send(strings.NewReader(asked)); code != http.StatusOK || took > 0 {
			t.Errorf("fast client: got %d after %s", code, took)
		}
		slow.Wait()
		if code, _ := send(strings.NewReader(asked)); code != http.StatusOK || connections != 1 {
			t.Errorf("after it the next is answered %d, on one of %d connections", code, connections)
		}
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
