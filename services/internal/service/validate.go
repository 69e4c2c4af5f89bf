package service

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// Bounds of settings.
const (
	maxNATSServers = 16
	minResync      = time.Second
	maxResync      = 24 * time.Hour
)

// Validate returns all errors in the settings, each with its remedy.
func (c Config) Validate() error {
	return errors.Join(c.validateBounds(), c.NATS.validateNATS(), checkFileReadable("kubeconfig", c.Kube.Kubeconfig),
		c.RPC.validateRPC(c.Embed.Listener != nil))
}

func (c Config) validateBounds() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	name := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	refuse(!name.MatchString(c.Cluster), "--cluster %.100q: use 1 to 63 small letters, digits and inner hyphens", c.Cluster)
	refuse(c.Resync < minResync || c.Resync > maxResync, "--resync %s: use %s to %s", c.Resync, minResync, maxResync)
	return errors.Join(errs...)
}

func (n NATSConfig) validateNATS() error {
	var errs []error
	servers := strings.Split(n.URL, ",")
	if len(servers) > maxNATSServers {
		errs = append(errs, fmt.Errorf("--nats-url names %d servers: use at most %d; the client finds the others itself", len(servers), maxNATSServers))
	}
	for i, server := range servers {
		// The message does not contain the URL, which may hold a password.
		if u, err := url.Parse(strings.TrimSpace(server)); err != nil || u.Hostname() == "" || !isNATSScheme(u.Scheme) {
			errs = append(errs, fmt.Errorf("--nats-url, server %d: use the form nats://HOST:PORT (or tls, ws, wss)", i+1))
		}
	}
	kinds := 0
	for _, given := range []string{n.CredsFile, n.NKeyFile, n.User, n.TokenFile} {
		if given != "" {
			kinds++
		}
	}
	if kinds > 1 {
		errs = append(errs, errors.New("NATS credentials of several kinds: use one of --nats-creds, --nats-nkey, --nats-user, --nats-token-file"))
	}
	if (n.User == "") != (n.PasswordFile == "") {
		errs = append(errs, errors.New("--nats-user and --nats-password-file belong together: give both or none"))
	}
	for flag, file := range map[string]string{
		"nats-creds": n.CredsFile, "nats-nkey": n.NKeyFile, "nats-password-file": n.PasswordFile,
		"nats-token-file": n.TokenFile, "nats-ca": n.CAFile,
	} {
		errs = append(errs, checkFileReadable(flag, file))
	}
	return errors.Join(errs...)
}

func isNATSScheme(scheme string) bool {
	switch scheme {
	case "nats", "tls", "ws", "wss":
		return true
	}
	return false
}

func (r RPCConfig) validateRPC(listening bool) error {
	var errs []error
	if _, _, err := net.SplitHostPort(r.Listen); err != nil && !listening {
		errs = append(errs, fmt.Errorf("--listen %.100q: use HOST:PORT, or :PORT for every address", r.Listen))
	}
	if err := r.Auth.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--auth: %w", err))
	}
	if (r.TLS.Certificate == "") != (r.TLS.Key == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key belong together: give both or none"))
	}
	return errors.Join(append(errs, checkFileReadable("tls-cert", r.TLS.Certificate), checkFileReadable("tls-key", r.TLS.Key))...)
}

// checkFileReadable returns an error if the file of a flag cannot be opened, so that a wrong path is reported at the
// start.
func checkFileReadable(flag, file string) error {
	if file == "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return f.Close()
}

// LogValue returns c without secrets. c holds only the paths of secret files. Only the URL of NATS may contain a
// password, which LogValue removes.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("cluster", c.Cluster),
		slog.Group("nats", "url", redactServerURLs(c.NATS.URL), "creds", c.NATS.CredsFile, "nkey", c.NATS.NKeyFile,
			"user", c.NATS.User, "password_file", c.NATS.PasswordFile, "token_file", c.NATS.TokenFile, "ca", c.NATS.CAFile),
		slog.Group("kube", "kubeconfig", c.Kube.Kubeconfig, "context", c.Kube.Context),
		slog.Group("rpc", "listen", c.RPC.Listen, "auth", string(c.RPC.Auth), "tls_cert", c.RPC.TLS.Certificate, "tls_key", c.RPC.TLS.Key),
		slog.String("resync", c.Resync.String()), slog.String("log_level", c.LogLevel.String()),
	)
}

func redactServerURLs(servers string) string {
	plain := strings.Split(servers, ",")
	for i, server := range plain {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil {
			plain[i] = "not a URL"
			continue
		}
		if u.User != nil {
			u.User = url.User("redacted")
		}
		plain[i] = u.String()
	}
	return strings.Join(plain, ",")
}
