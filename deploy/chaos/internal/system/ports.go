package system

import (
	"fmt"
	"net"
	"strconv"
)

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
		l, err := net.Listen("tcp", address(0))
		if err != nil {
			return fmt.Errorf("looking for a free port: %w", err)
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
