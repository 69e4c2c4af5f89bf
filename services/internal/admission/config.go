package admission

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
)

// Config says where the API server finds the webhooks. Without URL and Service there are none.
type Config struct {
	// Listen is the address of the webhooks. Listener replaces it when set.
	Listen   string
	Listener net.Listener
	// URL is for an API server outside of the cluster, Service, as namespace/name, for one that
	// knows the cluster's Services.
	URL, Service string
}

// Defaults is the one place where defaults are.
func Defaults() Config { return Config{Listen: ":9443"} }

// BindFlags makes every setting a flag.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Listen, "admission-listen", c.Listen, "`address` for the webhooks that the API server asks")
	fs.StringVar(&c.Service, "admission-service", c.Service, "`namespace/name` of the Service by which the API server finds them")
	fs.StringVar(&c.URL, "admission-url", c.URL, "`URL` by which it does where there is no such Service, https://host:port")
}

// Enabled tells whether there are webhooks.
func (c Config) Enabled() bool { return c.URL != "" || c.Service != "" }

// Validate says what is wrong and what to do about it.
func (c Config) Validate() error {
	if c.URL != "" && c.Service != "" {
		return errors.New("--admission-url and --admission-service: give one of them")
	}
	if c.Enabled() && c.host() == "" {
		return fmt.Errorf("--admission-url %.100q, --admission-service %.100q: give https://host:port or namespace/name", c.URL, c.Service)
	}
	return nil
}

// host is the name that the certificate is for; empty if there is none.
func (c Config) host() string {
	if namespace, name, ok := strings.Cut(c.Service, "/"); ok && namespace != "" && name != "" {
		return name + "." + namespace + ".svc"
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return ""
	}
	return u.Hostname()
}
