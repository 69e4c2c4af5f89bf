package devserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Loopback is the address that all servers listen on.
const Loopback = "127.0.0.1"

// LoopbackAddress returns host:port for a loopback port.
func LoopbackAddress(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }

// Operating systems do not assign ports of this range to outgoing connections, so no connection takes the port of a
// stopped server. On Linux these connections begin at endOfPorts (ip_local_port_range), and on other systems higher.
const lowestPort, endOfPorts = 16384, 32768

// portAttempts bounds the search for a free port.
const portAttempts = 100

// FreePort returns a free loopback port that no outgoing connection can take, so a server can restart on it.
func FreePort() (int, error) {
	var last error
	for range portAttempts {
		port := lowestPort + rand.IntN(endOfPorts-lowestPort)
		listener, err := net.Listen("tcp", LoopbackAddress(port))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("looking for a free port: %w", last)
}

// ReservePort returns a port for a server in another process, after a check that the port is free. With port 0, it
// finds a free port.
func ReservePort(serverName string, port int) (int, error) {
	listener, err := ListenLoopback(serverName, port)
	if err != nil {
		return 0, err
	}
	return PortOf(listener.Addr()), listener.Close()
}

// ListenLoopback listens on a loopback port. With port 0, it uses a free port. Errors name the server.
func ListenLoopback(serverName string, port int) (net.Listener, error) {
	if port == 0 {
		free, err := FreePort()
		if err != nil {
			return nil, err
		}
		port = free
	}
	listener, err := net.Listen("tcp", LoopbackAddress(port))
	if err != nil {
		return nil, describeListenError(serverName, port, err)
	}
	return listener, nil
}

// describeListenError adds advice to the error about a port that is in use.
func describeListenError(server string, port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d for %s is taken by another program: stop that one or choose another port (%w)", port, server, syscall.EADDRINUSE)
	}
	return fmt.Errorf("listening on port %d for %s: %w", port, server, err)
}

// PortOf returns the port of a TCP address.
func PortOf(address net.Addr) int {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}
