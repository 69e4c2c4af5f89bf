package system

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// ProxyMode is the behavior of a [Proxy].
type ProxyMode int

// Modes of a proxy.
const (
	// Forward lets all data pass.
	Forward ProxyMode = iota
	// Cut closes every connection and refuses new ones.
	Cut
	// Hold keeps connections open and lets nothing pass. Senders wait, and no data is lost when the proxy forwards
	// again.
	Hold
)

// Proxy is one path of TCP connections.
type Proxy struct {
	// Name names both ends, such as "tuple-sync-0 to nats-1".
	Name string

	target   string
	listener net.Listener

	mu      sync.Mutex
	changed *sync.Cond
	mode    ProxyMode
	pairs   map[*connectionPair]struct{}
	closed  bool
}

// connectionPair is a connection from a client with the connection to the server.
type connectionPair struct {
	client, server net.Conn
	// dead means that all data is dropped, and that neither side learns of it.
	dead bool
}

func newProxy(name, target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the path %s: %w", name, err)
	}
	p := &Proxy{Name: name, target: target, listener: listener, pairs: map[*connectionPair]struct{}{}}
	p.changed = sync.NewCond(&p.mu)
	go p.acceptLoop()
	return p, nil
}

// Address returns the address for clients.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// SetMode changes the mode, for open connections as well.
func (p *Proxy) SetMode(mode ProxyMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	if mode == Cut {
		for c := range p.pairs {
			if !c.dead {
				p.closePair(c)
			}
		}
	}
	p.changed.Broadcast()
}

// MakeHalfOpen makes the open connections drop all data without closing either side, as when a machine on the path dies.
// New connections are not affected.
func (p *Proxy) MakeHalfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.dead = true
	}
	p.changed.Broadcast()
}

// Close closes the path and all its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.pairs {
		p.closePair(c)
	}
	p.changed.Broadcast()
}

// closePair closes both ends. The caller holds the lock.
func (p *Proxy) closePair(c *connectionPair) {
	_ = c.client.Close()
	_ = c.server.Close()
	delete(p.pairs, c)
}

func (p *Proxy) acceptLoop() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // The listener was closed.
		}
		go p.serveConnection(client)
	}
}

// serveConnection forwards one connection. In mode Hold, a new connection waits like the open ones.
func (p *Proxy) serveConnection(client net.Conn) {
	if !p.waitToPass(&connectionPair{}) {
		_ = client.Close()
		return
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &connectionPair{client: client, server: server}
	if !p.addPair(c) {
		return
	}
	go p.copyDirection(c, server, client)
	p.copyDirection(c, client, server)
}

// addPair adds a connection. It closes the connection and returns false if the path was cut or closed meanwhile.
func (p *Proxy) addPair(c *connectionPair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pairs[c] = struct{}{}
	if p.closed || p.mode == Cut {
		p.closePair(c)
		return false
	}
	return true
}

// copyDirection copies one direction until it ends, then closes both directions, unless the connection is dead.
func (p *Proxy) copyDirection(c *connectionPair, to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.waitToPass(c) {
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
				p.closePair(c)
			}
			p.mu.Unlock()
			return
		}
	}
}

// waitToPass waits until data may pass, and returns false if it never may.
func (p *Proxy) waitToPass(c *connectionPair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == Hold && !c.dead && !p.closed {
		p.changed.Wait()
	}
	return !c.dead && !p.closed && p.mode != Cut
}
