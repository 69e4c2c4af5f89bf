package service

import (
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/rpc"
)

// Config is what every service can be told. Start from [Defaults].
type Config struct { //nolint:recvcheck // BindFlags fills it in; the others only read, also from a copy.
	// Cluster is the name under which this cluster's objects are on the bus.
	Cluster string
	NATS    NATS
	Kube    Kube
	RPC     RPC
	// Resync is how often everything is compared with the backends.
	Resync   time.Duration
	LogLevel slog.Level
	// Embed replaces parts of the surroundings when the service is one of several in a process.
	Embed Embed
}

// NATS leads to the bus. At most one kind of credentials is given; their files are read
// again at every connect.
type NATS struct {
	// URL of one server, or of several, separated by commas.
	URL string
	// CredsFile holds a JWT and its seed, NKeyFile a seed.
	CredsFile, NKeyFile string
	User, PasswordFile  string
	TokenFile           string
	// CAFile to check the servers' certificates with, instead of the system's.
	CAFile string
}

// Kube leads to the API server. Empty means: as kubectl would, or else in-cluster.
type Kube struct {
	Kubeconfig, Context string
}

// RPC is the one address of a service, for query APIs, probes and metrics.
type RPC struct {
	Listen string
	Auth   rpc.Auth
	TLS    rpc.Files
}

// Embed holds what cannot be said in flags.
type Embed struct {
	// Log replaces JSON on standard error.
	Log *slog.Logger
	// Kube replaces what [Kube] leads to.
	Kube *rest.Config
	// Listener replaces the one on RPC.Listen.
	Listener net.Listener
	// NATS adds options to the connection.
	NATS []nats.Option
}

// Defaults is the one place where defaults are.
func Defaults() Config {
	return Config{
		Cluster:  "local",
		NATS:     NATS{URL: nats.DefaultURL},
		RPC:      RPC{Listen: ":8080", Auth: rpc.Kubernetes},
		Resync:   10 * time.Minute,
		LogLevel: slog.LevelInfo,
	}
}

// BindFlags makes every setting a flag; its present value is the default. Each flag can
// also be given as an environment variable: --nats-url is ENTAIL_NATS_URL.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Cluster, "cluster", c.Cluster, "`name` of this cluster on the bus; never change it while the bus holds its objects")
	fs.StringVar(&c.NATS.URL, "nats-url", c.NATS.URL, "`URL` of a NATS server with JetStream, or several separated by commas")
	fs.StringVar(&c.NATS.CredsFile, "nats-creds", c.NATS.CredsFile, "`file` with a NATS user JWT and seed")
	fs.StringVar(&c.NATS.NKeyFile, "nats-nkey", c.NATS.NKeyFile, "`file` with a NATS user seed")
	fs.StringVar(&c.NATS.User, "nats-user", c.NATS.User, "NATS user `name`")
	fs.StringVar(&c.NATS.PasswordFile, "nats-password-file", c.NATS.PasswordFile, "`file` with the password of the NATS user")
	fs.StringVar(&c.NATS.TokenFile, "nats-token-file", c.NATS.TokenFile, "`file` with a NATS token")
	fs.StringVar(&c.NATS.CAFile, "nats-ca", c.NATS.CAFile, "`file` with the authority of the NATS servers' certificates (default the system's)")
	fs.StringVar(&c.Kube.Kubeconfig, "kubeconfig", c.Kube.Kubeconfig, "`file` that leads to the API server (default as kubectl, or in-cluster)")
	fs.StringVar(&c.Kube.Context, "context", c.Kube.Context, "`name` of a context in the kubeconfig (default its current one)")
	fs.StringVar(&c.RPC.Listen, "listen", c.RPC.Listen, "`address` for query APIs, probes and metrics")
	fs.StringVar((*string)(&c.RPC.Auth), "auth", string(c.RPC.Auth), "who may query: kubernetes (token and access reviews) or none (on loopback only)")
	fs.StringVar(&c.RPC.TLS.Certificate, "tls-cert", c.RPC.TLS.Certificate, "`file` with a certificate, read again when it changes (default no TLS)")
	fs.StringVar(&c.RPC.TLS.Key, "tls-key", c.RPC.TLS.Key, "`file` with the key of --tls-cert")
	fs.DurationVar(&c.Resync, "resync", c.Resync, "how often to compare everything with the backends")
	fs.TextVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
}
