package system

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Mode is what a [Proxy] does with what passes through it.
type Mode int

// Modes of a proxy.
const (
	// Forward lets everything pass.
	Forward Mode = iota
	// Cut closes every connection and takes no new one.
	Cut
	// Hold keeps connections open and lets nothing pass: who sends waits, and when the proxy
	// forwards again nothing is lost.
	Hold
)

// Proxy is one path of TCP connections.
type Proxy struct {
	// Name tells whose path it is, such as "tuple-sync-0 to nats-1".
	Name string

	target   string
	listener net.Listener

	mu      sync.Mutex
	changed *sync.Cond
	mode    Mode
	pairs   map[*pair]struct{}
	closed  bool
}

// pair is a connection from a client and the one that carries it on.
type pair struct {
	client, server net.Conn
	// dead says that nothing will ever pass again, and neither side is told.
	dead bool
}

func newProxy(name, target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the path %s: %w", name, err)
	}
	p := &Proxy{Name: name, target: target, listener: listener, pairs: map[*pair]struct{}{}}
	p.changed = sync.NewCond(&p.mu)
	go p.accept()
	return p, nil
}

// Address is where clients connect.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Set changes what the proxy does, with connections that are open, too.
func (p *Proxy) Set(mode Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	if mode == Cut {
		for c := range p.pairs {
			if !c.dead {
				p.drop(c)
			}
		}
	}
	p.changed.Broadcast()
}

// HalfOpen makes the connections that are open now swallow what is sent, without ever telling
// either side: as when a machine on the path dies. New connections are not concerned.
func (p *Proxy) HalfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.dead = true
	}
	p.changed.Broadcast()
}

// Close ends the path.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.pairs {
		p.drop(c)
	}
	p.changed.Broadcast()
}

// drop closes both ends. The caller holds the lock.
func (p *Proxy) drop(c *pair) {
	_ = c.client.Close()
	_ = c.server.Close()
	delete(p.pairs, c)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // It was closed.
		}
		go p.serve(client)
	}
}

// serve carries one connection. While the path holds, a new one waits as those that are open do.
func (p *Proxy) serve(client net.Conn) {
	if !p.pass(&pair{}) {
		_ = client.Close()
		return
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &pair{client: client, server: server}
	if !p.add(c) {
		return
	}
	go p.carry(c, server, client)
	p.carry(c, client, server)
}

// add adds a connection, unless the path was cut or closed while the connection was opened.
func (p *Proxy) add(c *pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pairs[c] = struct{}{}
	if p.closed || p.mode == Cut {
		p.drop(c)
		return false
	}
	return true
}

// carry copies one direction until it ends; then both have ended, unless the connection is dead.
func (p *Proxy) carry(c *pair, to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.pass(c) {
			return
		}
		if n > 0 {
			if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
				err = writeErr
			}
		}
		if err != nil {
			p.mu.Lock()
			if !c.dead {
				p.drop(c)
			}
			p.mu.Unlock()
			return
		}
	}
}

// pass waits until something may pass; false means never.
func (p *Proxy) pass(c *pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == Hold && !c.dead && !p.closed {
		p.changed.Wait()
	}
	return !c.dead && !p.closed && p.mode != Cut
}
