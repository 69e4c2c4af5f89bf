package search

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// checkAddress returns an error if a resolved address must not be called. An OpenSearchCluster could otherwise reach
// addresses that only this process may call.
func (s ConnectionSettings) checkAddress(_ context.Context, _, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	ip = ip.Unmap().WithZone("")
	if slices.Contains(s.Forbidden, host) || slices.Contains(s.Forbidden, net.JoinHostPort(ip.String(), portOf(address))) {
		return fmt.Errorf("%s is the API server: %w", address, errAddress)
	}
	if !s.Local && (ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsInterfaceLocalMulticast()) {
		return fmt.Errorf("%s is an address of this machine or its link: %w", address, errAddress)
	}
	return nil
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
