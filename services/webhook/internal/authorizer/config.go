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
	fs.StringVar(&c.Listen, "authorizer-listen", c.Listen, "`address` at which the API server asks who may what; nobody is answered without it")
	fs.StringVar(&c.Certificate, "authorizer-cert", c.Certificate, "PEM `file` with the certificate to show there; read again when it changes")
	fs.StringVar(&c.Key, "authorizer-key", c.Key, "PEM `file` with its key; likewise")
	fs.StringVar(&c.ClientCA, "authorizer-client-ca", c.ClientCA, "PEM `file` with the authorities that sign for who may ask; likewise")
	fs.StringSliceVar(&c.ClientNames, "client-names", c.ClientNames, "common `names` in the certificates of who may ask")
	fs.BoolVar(&c.ExplicitDeny, "explicit-deny", c.ExplicitDeny, "what is refused is denied, whatever other authorizers would say")
	fs.BoolVar(&c.Shadow, "shadow", c.Shadow, "log what would be answered, and have no opinion")
	fs.Float64Var(&c.DecisionLog, "decision-log", c.DecisionLog, "`share` of decisions that are logged, 0 to 1; in shadow all are unless it says less")
}

// Enabled reports whether a server is configured.
func (c *Config) Enabled() bool { return c.Listen != "" || c.Listener != nil }

// Validate returns an error that describes an invalid setting with its remedy.
func (c *Config) Validate() error {
	if c.DecisionLog < 0 || c.DecisionLog > 1 || c.DecisionLog != c.DecisionLog {
		return fmt.Errorf("--decision-log %v: use a share of 0 to 1", c.DecisionLog)
	}
	if c.Shadow && c.ExplicitDeny {
		return errors.New("--shadow and --explicit-deny: what has no opinion denies nothing: give one of them")
	}
	if !c.Enabled() {
		return nil
	}
	if (c.Certificate == "") != (c.Key == "") {
		return errors.New("--authorizer-cert and --authorizer-key need one another: give both or none")
	}
	if c.ClientCA != "" && (c.Certificate == "" || len(c.ClientNames) == 0) {
		return errors.New("--authorizer-client-ca: give --authorizer-cert, --authorizer-key and --client-names, too")
	}
	if c.ClientCA == "" && !c.isOnLoopback() {
		return fmt.Errorf("--authorizer-listen %.100q: whoever reaches it could ask: give --authorizer-client-ca, or listen on 127.0.0.1", c.Listen)
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
