package opensearchsync

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/setup"
)

// Config holds the settings of opensearch-sync. Start from [Defaults].
type Config struct {
	setup.Config
	// SecretInterval is the interval for reading Secrets of users that the watcher does not follow.
	SecretInterval time.Duration
	// DriftInterval is the interval for comparing OpenSearch with the objects.
	DriftInterval time.Duration
	// Local permits clusters at addresses of this machine. Use it for development only.
	Local bool
	// Legacy also handles objects of the former API group of the public operator.
	Legacy bool
	// BatchTime bounds how long one run writes passwords. The server hashes each of them, and removals must not wait
	// longer.
	BatchTime time.Duration
}

// minSecretInterval bounds the load on the API server.
const minSecretInterval = 100 * time.Millisecond

// minDriftInterval bounds the load on OpenSearch.
const minDriftInterval = time.Second

// Defaults returns the default settings.
func Defaults() Config {
	return Config{
		Config: setup.Defaults(), SecretInterval: 10 * time.Second, DriftInterval: 30 * time.Second, BatchTime: 10 * time.Second,
	}
}

// BindFlags defines a flag for each setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.DurationVar(&c.SecretInterval, "secret-interval", c.SecretInterval,
		"how often to read the Secrets of users again where the watcher does not follow them (its --secret-namespaces)")
	fs.DurationVar(&c.DriftInterval, "drift-interval", c.DriftInterval,
		"how often to compare OpenSearch with the objects, and to repair changes of other software")
	fs.BoolVar(&c.Local, "local-clusters", c.Local, "allow OpenSearch clusters at addresses of this machine; for development only")
	fs.BoolVar(&c.Legacy, "legacy-group", c.Legacy,
		"also manage objects of "+opensearchv1.LegacyGroup+"; the public operator must not manage them any more")
}

// Validate returns an error that names each wrong setting and how to correct it.
func (c *Config) Validate() error {
	var interval, drift error
	if c.SecretInterval < minSecretInterval {
		interval = fmt.Errorf("--secret-interval %s: use at least %s", c.SecretInterval, minSecretInterval)
	}
	if c.DriftInterval < minDriftInterval {
		drift = fmt.Errorf("--drift-interval %s: use at least %s", c.DriftInterval, minDriftInterval)
	}
	return errors.Join(c.Config.Validate(), interval, drift)
}
