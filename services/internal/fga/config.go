package fga

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

const (
	defaultTarget = "127.0.0.1:8081"
	// DefaultTimeout bounds one call.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxTuples is how many tuples a server with default settings takes in one call.
	DefaultMaxTuples = 100
	maxMaxTuples     = 10_000
)

// Config says how to reach OpenFGA. The zero value of every field but Target is its default.
type Config struct {
	// Target is host:port of the gRPC API.
	Target string
	// Plaintext turns TLS off for a host that is not this one. A loopback target is
	// plaintext in any case unless CAFile is set.
	Plaintext bool
	// CAFile holds the authorities that the server's certificate is checked against;
	// the system's when empty.
	CAFile string
	// Token is the preshared key; none when empty.
	Token Token
	// TokenFile holds the preshared key, for a mounted secret. Not together with Token. It and CAFile
	// are read again when they change.
	TokenFile string
	// Timeout of one call.
	Timeout time.Duration
	// MaxTuples per Write call; not more than the server's --max-tuples-per-write.
	MaxTuples int
	// Log and Tracer are none by default.
	Log    *slog.Logger
	Tracer trace.TracerProvider
	// DialOptions come after our own.
	DialOptions []grpc.DialOption
}

// BindFlags makes c settable by flags and sets the defaults.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Target, "openfga-target", defaultTarget, "host:port of OpenFGA's gRPC API")
	fs.BoolVar(&c.Plaintext, "openfga-plaintext", false, "talk to OpenFGA without TLS (a loopback target is plaintext anyway)")
	fs.StringVar(&c.CAFile, "openfga-ca-file", "", "`file` with the authorities of OpenFGA's certificate (default: the system's)")
	fs.Var(&c.Token, "openfga-token", "OpenFGA's preshared key; a command line is visible to others, so use the environment or --openfga-token-file")
	fs.StringVar(&c.TokenFile, "openfga-token-file", "", "`file` with OpenFGA's preshared key")
	fs.DurationVar(&c.Timeout, "openfga-timeout", DefaultTimeout, "longest time of one call to OpenFGA")
	fs.IntVar(&c.MaxTuples, "openfga-max-tuples", DefaultMaxTuples, "tuples in one call; at most the server's --max-tuples-per-write")
}

// Validate refuses what could not work.
func (c Config) Validate() error {
	host, port, err := net.SplitHostPort(c.Target)
	switch {
	case err != nil || host == "" || port == "":
		return fmt.Errorf("--openfga-target %.200q is not host:port", c.Target)
	case c.Plaintext && c.CAFile != "":
		return errors.New("--openfga-plaintext and --openfga-ca-file exclude each other: drop one")
	case c.Token != "" && c.TokenFile != "":
		return errors.New("--openfga-token and --openfga-token-file exclude each other: drop one")
	case c.Timeout < 0:
		return fmt.Errorf("--openfga-timeout %s is negative", c.Timeout)
	case c.MaxTuples < 0 || c.MaxTuples > maxMaxTuples:
		return fmt.Errorf("--openfga-max-tuples %d is out of range: use 1 to %d, or 0 for %d", c.MaxTuples, maxMaxTuples, DefaultMaxTuples)
	}
	return nil
}

func (c Config) plaintext() bool {
	if c.Plaintext || c.CAFile != "" {
		return c.Plaintext
	}
	host, _, _ := net.SplitHostPort(c.Target)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (c Config) log() *slog.Logger {
	return cmp.Or(c.Log, slog.New(slog.DiscardHandler))
}
