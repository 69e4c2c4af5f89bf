package opensearchsync

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/controller"
)

// Config is what opensearch-sync can be told. Start from [Defaults].
type Config struct {
	controller.Config
	// SecretInterval is how often the Secrets of users are read again that the watcher does not follow.
	SecretInterval time.Duration
	// DriftInterval is how often OpenSearch is compared with the objects.
	DriftInterval time.Duration
	// Local lets clusters be on this machine, which only a machine of one's own may.
	Local bool
	// Legacy takes objects of the group that the public operator had before, too.
	Legacy bool
	// BatchTime bounds how long one pass writes passwords, which the server takes its time to hash: removals wait no longer.
	BatchTime time.Duration
}

// minSecretInterval keeps the API server from being asked all the time.
const minSecretInterval = 100 * time.Millisecond

// minDriftInterval keeps OpenSearch from listing everything all the time.
const minDriftInterval = time.Second

// Defaults is the one place where defaults are.
func Defaults() Config {
	return Config{
		Config: controller.Defaults(), SecretInterval: 10 * time.Second, DriftInterval: 30 * time.Second, BatchTime: 10 * time.Second,
	}
}

// BindFlags makes every setting a flag.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.DurationVar(&c.SecretInterval, "secret-interval", c.SecretInterval,
		"how often to read the Secrets of users again where the watcher does not follow them (its --secret-namespaces)")
	fs.DurationVar(&c.DriftInterval, "drift-interval", c.DriftInterval,
		"how often to compare OpenSearch with the objects, and repair what other software changed there")
	fs.BoolVar(&c.Local, "local-clusters", c.Local, "let OpenSearch clusters be at addresses of this machine: for development alone")
	fs.BoolVar(&c.Legacy, "legacy-group", c.Legacy,
		"take objects of "+opensearchv1.LegacyGroup+", too, which the public operator must then not manage any more")
}

// Validate says what is wrong and what to do about it.
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
