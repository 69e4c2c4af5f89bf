package system

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Outgoing connections are not given ports from here (ip_local_port_range of Linux begins at the second): while
// a server is down, nobody takes its port.
const lowestPort, endOfPorts = 16384, 32768

// portAttempts bounds the search for a free port.
const portAttempts = 100

// listen takes a free port to which whoever goes away can come back.
func listen() (net.Listener, error) {
	var last error
	for range portAttempts {
		l, err := net.Listen("tcp", address(lowestPort+rand.IntN(endOfPorts-lowestPort)))
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, fmt.Errorf("looking for a free port: %w", last)
}

// freeAddress is one where nobody listens now.
func freeAddress() (string, error) {
	l, err := listen()
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// reserve finds free ports for all servers. They are only kept from each other, so another program
// could take one before it is used: then the start fails and says so.
func (s *System) reserve() error {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	next := func(port *int) error {
		l, err := listen()
		if err != nil {
			return err
		}
		open = append(open, l)
		*port = l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // It is one of TCP.
		return nil
	}
	s.ports.nats, s.ports.routes = make([]int, s.cfg.Nodes), make([]int, s.cfg.Nodes)
	wanted := []*int{&s.ports.openFGA, &s.ports.openFGAMetrics, &s.ports.kube}
	for i := range s.cfg.Nodes {
		wanted = append(wanted, &s.ports.nats[i], &s.ports.routes[i])
	}
	for _, port := range wanted {
		if err := next(port); err != nil {
			return err
		}
	}
	return nil
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
