package system

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Range of ports for servers. Linux gives outgoing connections ports from endOfPorts on (ip_local_port_range), so no
// connection takes the port of a server that is down.
const lowestPort, endOfPorts = 16384, 32768

// portAttempts bounds the search for a free port.
const portAttempts = 100

// listenOnFreePort listens on a free port that a restarted server can use again.
func listenOnFreePort() (net.Listener, error) {
	var last error
	for range portAttempts {
		l, err := net.Listen("tcp", loopbackAddress(lowestPort+rand.IntN(endOfPorts-lowestPort)))
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, fmt.Errorf("looking for a free port: %w", last)
}

// freeAddress returns an address on which no server listens at the moment.
func freeAddress() (string, error) {
	l, err := listenOnFreePort()
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// reservePorts chooses different free ports for all servers. Another program may take one before its server starts; then the
// start fails with an error.
func (s *System) reservePorts() error {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	next := func(port *int) error {
		l, err := listenOnFreePort()
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

func loopbackAddress(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
