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

// Config holds the settings that every service has. Start from [Defaults].
type Config struct { //nolint:recvcheck // BindFlags fills it in; the others only read, also from a copy.
	// Cluster is the name of this cluster on NATS.
	Cluster string
	NATS    NATSConfig
	Kube    KubeConfig
	RPC     RPCConfig
	// Resync is the interval in which everything is compared with the backends.
	Resync   time.Duration
	LogLevel slog.Level
	// Embed holds settings for several services in one process.
	Embed EmbedConfig
}

// NATSConfig describes the connection to NATS. At most one kind of credentials may be set. The credential files are
// read at every connect.
type NATSConfig struct {
	// URL names one server, or several separated by commas.
	URL string
	// CredsFile holds a user JWT and its seed. NKeyFile holds only a seed.
	CredsFile, NKeyFile string
	User, PasswordFile  string
	TokenFile           string
	// CAFile replaces the system's certificate authorities for the NATS servers.
	CAFile string
}

// KubeConfig describes the connection to the API server. If it is empty, kubectl's rules apply, then the in-cluster
// configuration.
type KubeConfig struct {
	Kubeconfig, Context string
}

// RPCConfig describes the listener of a service for query APIs, probes and metrics.
type RPCConfig struct {
	Listen string
	Auth   rpc.AuthMode
	TLS    rpc.CertificateFiles
}

// EmbedConfig holds settings that have no flags.
type EmbedConfig struct {
	// Log replaces the JSON log on standard error.
	Log *slog.Logger
	// Kube replaces the configuration that [KubeConfig] describes.
	Kube *rest.Config
	// Listener replaces the listener on RPC.Listen.
	Listener net.Listener
}

// Defaults returns the default settings.
func Defaults() Config {
	return Config{
		Cluster:  "local",
		NATS:     NATSConfig{URL: nats.DefaultURL},
		RPC:      RPCConfig{Listen: ":8080", Auth: rpc.AuthKubernetes},
		Resync:   10 * time.Minute,
		LogLevel: slog.LevelInfo,
	}
}

// BindFlags defines a flag for every setting. The present value is the default. An environment variable can also set
// each flag: --nats-url is ENTAIL_NATS_URL.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Cluster, "cluster", c.Cluster, "`name` of this cluster on the bus; never change it while the bus holds its objects")
	fs.StringVar(&c.NATS.URL, "nats-url", c.NATS.URL, "`URL` of a NATS server with JetStream, or several separated by commas")
	fs.StringVar(&c.NATS.CredsFile, "nats-creds", c.NATS.CredsFile, "`file` with a NATS user JWT and seed")
	fs.StringVar(&c.NATS.NKeyFile, "nats-nkey", c.NATS.NKeyFile, "`file` with a NATS user seed")
	fs.StringVar(&c.NATS.User, "nats-user", c.NATS.User, "NATS user `name`")
	fs.StringVar(&c.NATS.PasswordFile, "nats-password-file", c.NATS.PasswordFile, "`file` with the password of the NATS user")
	fs.StringVar(&c.NATS.TokenFile, "nats-token-file", c.NATS.TokenFile, "`file` with a NATS token")
	fs.StringVar(&c.NATS.CAFile, "nats-ca", c.NATS.CAFile, "`file` with the authority of the NATS servers' certificates (default the system's)")
	fs.StringVar(&c.Kube.Kubeconfig, "kubeconfig", c.Kube.Kubeconfig, "kubeconfig `file` of the API server (default as kubectl, or in-cluster)")
	fs.StringVar(&c.Kube.Context, "context", c.Kube.Context, "`name` of a context in the kubeconfig (default its current one)")
	fs.StringVar(&c.RPC.Listen, "listen", c.RPC.Listen, "`address` for query APIs, probes and metrics")
	fs.StringVar((*string)(&c.RPC.Auth), "auth", string(c.RPC.Auth),
		"authentication of callers: kubernetes (token and access reviews) or none (on loopback only)")
	fs.StringVar(&c.RPC.TLS.Certificate, "tls-cert", c.RPC.TLS.Certificate, "`file` with a certificate, read again when it changes (default no TLS)")
	fs.StringVar(&c.RPC.TLS.Key, "tls-key", c.RPC.TLS.Key, "`file` with the key of --tls-cert")
	fs.DurationVar(&c.Resync, "resync", c.Resync, "how often to compare everything with the backends")
	fs.TextVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
}
