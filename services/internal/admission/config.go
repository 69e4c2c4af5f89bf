package admission

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
)

// Config configures the address of the webhooks. Without URL and Service, webhooks are off.
type Config struct {
	// Listen is the listen address. If Listener is set, it replaces Listen.
	Listen   string
	Listener net.Listener
	// URL is the address at which an API server outside of the cluster calls the webhooks. Inside, it calls Service, in
	// the form namespace/name.
	URL, Service string
}

// Defaults returns the default configuration.
func Defaults() Config { return Config{Listen: ":9443"} }

// BindFlags registers a flag for each setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Listen, "admission-listen", c.Listen, "`address` for the webhooks that the API server asks")
	fs.StringVar(&c.Service, "admission-service", c.Service, "`namespace/name` of the Service through which the API server reaches the webhooks")
	fs.StringVar(&c.URL, "admission-url", c.URL, "`URL` through which the API server reaches the webhooks if there is no Service, https://host:port")
}

// Enabled reports whether webhooks are on.
func (c Config) Enabled() bool { return c.URL != "" || c.Service != "" }

// Validate returns an error for invalid settings.
func (c Config) Validate() error {
	if c.URL != "" && c.Service != "" {
		return errors.New("--admission-url and --admission-service: give one of them")
	}
	if c.Enabled() && c.hostName() == "" {
		return fmt.Errorf("--admission-url %.100q, --admission-service %.100q: give https://host:port or namespace/name", c.URL, c.Service)
	}
	return nil
}

// hostName returns the host name for the certificate, or "" if the configuration has no valid one.
func (c Config) hostName() string {
	if namespace, name, ok := strings.Cut(c.Service, "/"); ok && namespace != "" && name != "" {
		return name + "." + namespace + ".svc"
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return ""
	}
	return u.Hostname()
}
