package fga

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

const (
	defaultTarget = "127.0.0.1:8081"
	// DefaultTimeout bounds one call.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxTuples bounds the tuples in one Write call. It is the server's default limit.
	DefaultMaxTuples = 100
	maxMaxTuples     = 10_000
)

// Config configures the connection to OpenFGA. Only Target is required.
type Config struct {
	// Target is host:port of the gRPC API, dns:///host:port for all addresses of a name in turn, or the https://… URL
	// of the HTTP API.
	Target string
	// Plaintext turns TLS off for a remote host. A loopback target uses plaintext unless CAFile is set.
	Plaintext bool
	// CAFile holds the certificate authorities for the server and for the token issuer. If it is empty, the system's
	// authorities are used.
	CAFile string
	// PresharedKey is the preshared key. If it is empty, no key is sent.
	PresharedKey Credential
	// PresharedKeyFile is a file with the preshared key, such as a mounted secret. PresharedKey and PresharedKeyFile
	// exclude each other. PresharedKeyFile, CAFile and ClientSecretFile are read again when they change.
	PresharedKeyFile string
	// ClientID selects OAuth client credentials. The secret is in ClientSecretFile, and the issuer is at TokenURL.
	// Audience and Scopes are optional. ClientID and a preshared key exclude each other.
	ClientID, ClientSecretFile, TokenURL, Audience string
	Scopes                                         []string
	// Timeout bounds one call.
	Timeout time.Duration
	// MaxTuples bounds the tuples in one Write call. It must not exceed the server's --max-tuples-per-write.
	MaxTuples int
	// Log and Tracer are optional.
	Log    *slog.Logger
	Tracer trace.TracerProvider
	// DialOptions come after the client's own options.
	DialOptions []grpc.DialOption
}

// BindFlags registers flags for the fields of c and sets the defaults.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Target, "openfga-target", defaultTarget,
		"host:port of OpenFGA's gRPC API, dns:///host:port for all addresses of that name in turn, or the https://… `address` of its HTTP API")
	fs.BoolVar(&c.Plaintext, "openfga-plaintext", false, "talk to OpenFGA without TLS (a loopback target is plaintext anyway)")
	fs.StringVar(&c.CAFile, "openfga-ca-file", "",
		"`file` with the authorities of OpenFGA's certificate, and of the token issuer's (default: the system's)")
	fs.Var(&c.PresharedKey, "openfga-token", "OpenFGA's preshared key; a command line is visible to others, so use the environment or --openfga-token-file")
	fs.StringVar(&c.PresharedKeyFile, "openfga-token-file", "", "`file` with OpenFGA's preshared key")
	fs.StringVar(&c.ClientID, "openfga-client-id", "", "`name` of an OAuth client that gets tokens for OpenFGA; use it instead of a preshared key")
	fs.StringVar(&c.ClientSecretFile, "openfga-client-secret-file", "", "`file` with its secret")
	fs.StringVar(&c.TokenURL, "openfga-token-url", "", "`URL` of the token endpoint, such as https://issuer.example/oauth/token")
	fs.StringVar(&c.Audience, "openfga-audience", "", "`audience` that it asks for")
	fs.StringSliceVar(&c.Scopes, "openfga-scopes", nil, "`scopes` of these tokens, separated by commas")
	fs.DurationVar(&c.Timeout, "openfga-timeout", DefaultTimeout, "longest time of one call to OpenFGA")
	fs.IntVar(&c.MaxTuples, "openfga-max-tuples", DefaultMaxTuples, "tuples in one call; at most the server's --max-tuples-per-write")
}

// Validate returns an error for values that are invalid or exclude each other.
func (c Config) Validate() error {
	switch {
	case c.Plaintext && c.CAFile != "":
		return errors.New("--openfga-plaintext and --openfga-ca-file exclude each other: drop one")
	case c.PresharedKey != "" && c.PresharedKeyFile != "":
		return errors.New("--openfga-token and --openfga-token-file exclude each other: drop one")
	case c.Timeout < 0:
		return fmt.Errorf("--openfga-timeout %s is negative", c.Timeout)
	case c.MaxTuples < 0 || c.MaxTuples > maxMaxTuples:
		return fmt.Errorf("--openfga-max-tuples %d is out of range: use 1 to %d, or 0 for %d", c.MaxTuples, maxMaxTuples, DefaultMaxTuples)
	}
	return errors.Join(c.validateTarget(), c.validateOAuthClient())
}

func (c Config) validateOAuthClient() error {
	u, err := url.Parse(c.TokenURL)
	switch {
	case c.ClientID == "" && c.ClientSecretFile == "" && c.TokenURL == "":
		if c.Audience == "" && len(c.Scopes) == 0 {
			return nil
		}
		return errors.New("--openfga-audience and --openfga-scopes are for tokens of --openfga-client-id")
	case c.ClientID == "" || c.ClientSecretFile == "" || c.TokenURL == "":
		return errors.New("--openfga-client-id, --openfga-client-secret-file and --openfga-token-url belong together: give all or none")
	case c.PresharedKey != "" || c.PresharedKeyFile != "":
		return errors.New("--openfga-client-id and a preshared key exclude each other: drop one")
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != schemeHTTPS && (u.Scheme != schemeHTTP || !isLoopback(u.Host)):
		return errors.New("--openfga-token-url: use https://HOST/PATH, or http on loopback")
	}
	return nil
}

func (c Config) logger() *slog.Logger {
	return cmp.Or(c.Log, slog.New(slog.DiscardHandler))
}
