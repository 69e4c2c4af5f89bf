package fga

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// errURL does not quote the URL, because the URL can contain a password.
var errURL = errors.New("--openfga-target: use https://HOST[:PORT][/PATH]; credentials have their own flags")

const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
	schemeDNS   = "dns"
)

// splitTarget splits Target into a scheme and a host with port. The scheme is empty for host:port.
func (c Config) splitTarget() (scheme, host string) {
	scheme, rest, found := strings.Cut(c.Target, "://")
	if !found {
		return "", c.Target
	}
	if u, err := url.Parse(c.Target); scheme != schemeDNS && err == nil {
		return scheme, u.Host
	}
	return scheme, rest[strings.LastIndexByte(rest, '/')+1:]
}

// isHTTPTarget reports whether the client uses the HTTP API.
func (c Config) isHTTPTarget() bool {
	scheme, _ := c.splitTarget()
	return scheme == schemeHTTP || scheme == schemeHTTPS
}

func (c Config) validateTarget() error {
	scheme, host := c.splitTarget()
	switch scheme {
	case schemeHTTPS, schemeHTTP:
		return c.validateURL(scheme)
	case "", schemeDNS:
		if h, port, err := net.SplitHostPort(host); err == nil && h != "" && port != "" {
			return nil
		}
	}
	return fmt.Errorf("--openfga-target %.200q is not host:port, dns:///host:port or https://host", c.Target)
}

func (c Config) validateURL(scheme string) error {
	u, err := url.Parse(c.Target)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errURL
	case scheme == schemeHTTPS && c.Plaintext:
		return errors.New("--openfga-plaintext and an https URL exclude each other: drop one")
	case scheme == schemeHTTP && c.CAFile != "":
		return errors.New("--openfga-ca-file is for an https URL")
	case scheme == schemeHTTP && !c.Plaintext && !isLoopback(u.Host):
		return errors.New("--openfga-target: http is not encrypted: use https, or give --openfga-plaintext")
	}
	return nil
}

// isPlaintext reports whether the connection is not encrypted.
func (c Config) isPlaintext() bool {
	scheme, host := c.splitTarget()
	switch {
	case c.isHTTPTarget():
		return scheme == schemeHTTP
	case c.Plaintext || c.CAFile != "":
		return c.Plaintext
	}
	return isLoopback(host)
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
