package devserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Loopback is the address that every server listens on.
const Loopback = "127.0.0.1"

// Address is host:port of a server that this package started on the given port.
func Address(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }

// Outgoing connections are not given ports from here (ip_local_port_range of Linux begins at the second, and
// no other system's range begins below it): while a server is away for a moment, nobody takes its port.
const lowestPort, endOfPorts = 16384, 32768

// portAttempts bounds the search for a free port.
const portAttempts = 100

// FreePort is a port of the loopback interface on which nobody listens, and that no outgoing connection is
// given: whoever goes away can come back to it.
func FreePort() (int, error) {
	var last error
	for range portAttempts {
		port := lowestPort + rand.IntN(endOfPorts-lowestPort)
		listener, err := net.Listen("tcp", Address(port))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("looking for a free port: %w", last)
}

// ReservePort is the port for a server that is no part of this process, after a look whether it can be had;
// 0 finds a free one.
func ReservePort(server string, port int) (int, error) {
	listener, err := Listen(server, port)
	if err != nil {
		return 0, err
	}
	return PortOf(listener.Addr()), listener.Close()
}

// Listen takes a port of the loopback interface for a server; 0 takes a free one.
func Listen(server string, port int) (net.Listener, error) {
	if port == 0 {
		free, err := FreePort()
		if err != nil {
			return nil, err
		}
		port = free
	}
	listener, err := net.Listen("tcp", Address(port))
	if err != nil {
		return nil, clash(server, port, err)
	}
	return listener, nil
}

// clash tells what to do about a port that cannot be had.
func clash(server string, port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d for %s is taken by another program: stop that one or choose another port (%w)", port, server, syscall.EADDRINUSE)
	}
	return fmt.Errorf("listening on port %d for %s: %w", port, server, err)
}

// PortOf returns the port of an address of TCP.
func PortOf(address net.Addr) int {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}
