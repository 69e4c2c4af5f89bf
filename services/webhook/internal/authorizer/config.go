package authorizer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/pflag"
)

// Config holds the settings of the server. Without Listen and Listener there is no server.
type Config struct {
	// Listen is the address of the server. Listener replaces it when set.
	Listen   string
	Listener net.Listener
	// Certificate and Key are PEM files of the server. ClientCA is a PEM file with the authorities of clients.
	Certificate, Key, ClientCA string
	// ClientNames lists the common names of the clients that may send reviews.
	ClientNames []string
	// ExplicitDeny turns a refusal into a denial, so that no later authorizer can allow the request.
	ExplicitDeny bool
	// Shadow logs each answer and sends no opinion instead.
	Shadow bool
	// DecisionLog is the share of decisions that are logged, 0 to 1.
	DecisionLog float64
}

// Defaults returns the default of every setting.
func Defaults() Config { return Config{ClientNames: []string{"kube-apiserver"}} }

// BindFlags adds a flag for every setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Listen, "authorizer-listen", c.Listen, "`address` for SubjectAccessReviews of the API server; without it webhook answers none")
	fs.StringVar(&c.Certificate, "authorizer-cert", c.Certificate, "PEM `file` with the server certificate for it; read again when it changes")
	fs.StringVar(&c.Key, "authorizer-key", c.Key, "PEM `file` with its key; likewise")
	fs.StringVar(&c.ClientCA, "authorizer-client-ca", c.ClientCA, "PEM `file` with the authorities of client certificates; read again when it changes")
	fs.StringSliceVar(&c.ClientNames, "client-names", c.ClientNames, "common `names` of the client certificates that are accepted")
	fs.BoolVar(&c.ExplicitDeny, "explicit-deny", c.ExplicitDeny, "deny what webhook refuses, so that later authorizers cannot allow it")
	fs.BoolVar(&c.Shadow, "shadow", c.Shadow, "answer every request with no opinion, and log the decision")
	fs.Float64Var(&c.DecisionLog, "decision-log", c.DecisionLog, "`share` of decisions that are logged, 0 to 1; with --shadow the default is 1")
}

// Enabled reports whether a server is configured.
func (c *Config) Enabled() bool { return c.Listen != "" || c.Listener != nil }

// Validate returns an error that describes an invalid setting with its remedy.
func (c *Config) Validate() error {
	if c.DecisionLog < 0 || c.DecisionLog > 1 || c.DecisionLog != c.DecisionLog {
		return fmt.Errorf("--decision-log %v: use a share of 0 to 1", c.DecisionLog)
	}
	if c.Shadow && c.ExplicitDeny {
		return errors.New("--shadow and --explicit-deny exclude each other: drop one")
	}
	if !c.Enabled() {
		return nil
	}
	if (c.Certificate == "") != (c.Key == "") {
		return errors.New("--authorizer-cert and --authorizer-key belong together: give both or none")
	}
	if c.ClientCA != "" && (c.Certificate == "" || len(c.ClientNames) == 0) {
		return errors.New("--authorizer-client-ca: give --authorizer-cert, --authorizer-key and --client-names, too")
	}
	if c.ClientCA == "" && !c.isOnLoopback() {
		return fmt.Errorf("--authorizer-listen %.100q is open to every client: give --authorizer-client-ca, or listen on 127.0.0.1", c.Listen)
	}
	return nil
}

func (c *Config) isOnLoopback() bool {
	address := c.Listen
	if c.Listener != nil {
		address = c.Listener.Addr().String()
	}
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().IsLoopback()
}
