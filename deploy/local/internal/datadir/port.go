package datadir

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Listen opens the port of the API server. Port 0 takes the port of the last
// run when it is still free, else any free one, so that a kubeconfig keeps
// its address over restarts.
func (d *Dir) Listen(address net.IP, port int) (net.Listener, error) {
	last := d.lastPort()
	if port == 0 && last != 0 {
		if listener, err := listenTCP(address, last); err == nil {
			return listener, nil
		}
	}
	listener, err := listenTCP(address, port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d of %s is in use: stop the process that holds it, or choose another --port (0 takes a free one)", port, address)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on port %d of %s: %w", port, address, err)
	}
	bound, _ := listener.Addr().(*net.TCPAddr) // It listens on TCP.
	taken := bound.Port
	if taken == last {
		return listener, nil
	}
	if err := WriteFile(d.Path("port"), fmt.Appendf(nil, "%d\n", taken)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// lastPort is 0 when no earlier run left a usable note.
func (d *Dir) lastPort() int {
	note, err := os.ReadFile(d.Path("port"))
	if err != nil {
		return 0
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(note)), 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}

func listenTCP(address net.IP, port int) (net.Listener, error) {
	return net.ListenTCP("tcp", &net.TCPAddr{IP: address, Port: port})
}
