package setup

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Config holds the settings of every service that reconciles changes. Start from [Defaults].
type Config struct { //nolint:recvcheck // BindFlags fills it in; Validate only reads, also from a copy.
	service.Config
	// Workers bounds the keys that are reconciled in parallel.
	Workers int
	// Takeover bounds how soon another replica takes over.
	Takeover topology.TakeoverBounds
	// MaxDelay bounds the wait before a retry; zero means the default of [controller.Config].
	MaxDelay time.Duration
}

const maxWorkers = 1024

// Defaults returns the default settings.
func Defaults() Config {
	return Config{Config: service.Defaults(), Workers: 16, Takeover: topology.DefaultTakeoverBounds()}
}

// BindFlags defines a flag for every setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.IntVar(&c.Workers, "workers", c.Workers, "how many keys to reconcile at a time")
}

// Validate returns all errors in the settings, each with its remedy.
func (c Config) Validate() error {
	var workers error
	if c.Workers < 1 || c.Workers > maxWorkers {
		workers = fmt.Errorf("--workers %d: use 1 to %d", c.Workers, maxWorkers)
	}
	return errors.Join(c.Config.Validate(), workers)
}
