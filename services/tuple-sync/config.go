package tuplesync

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/service"
)

// Config is what tuple-sync can be told. Start from [Defaults].
type Config struct {
	service.Config
	OpenFGA fga.Config
}

// Defaults is the one place where defaults are.
func Defaults() Config {
	return Config{Config: service.Defaults()}
}

// BindFlags makes every setting a flag.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	c.OpenFGA.BindFlags(fs)
}

// Validate says what is wrong and what to do about it.
func (c *Config) Validate() error {
	return errors.Join(c.Config.Validate(), c.OpenFGA.Validate())
}
