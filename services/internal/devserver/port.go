package devserver

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

const loopback = "127.0.0.1"

// Address is host:port of a server that this package started on the given port.
func Address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// listen takes a port of the loopback interface; 0 takes a free one.
func listen(server string, port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", Address(port))
	if err != nil {
		return nil, clash(server, port, err)
	}
	return listener, nil
}

// clash tells what to do about a port that cannot be had.
func clash(server string, port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d for %s is taken by another program: stop that one or choose another port", port, server)
	}
	return fmt.Errorf("listening on port %d for %s: %w", port, server, err)
}

func portOf(address net.Addr) int {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}
