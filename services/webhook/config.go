package webhook

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/entail-dev/entail/services/internal/service"
)

// Config is what webhook can be told. Start from [Defaults].
type Config struct {
	service.Config
	// Store is the name of the Store that has the model of IAM.
	Store string
}

// Defaults is the one place where defaults are.
func Defaults() Config {
	return Config{Config: service.Defaults(), Store: "iam"}
}

// BindFlags makes every setting a flag.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.StringVar(&c.Store, "iam-store", c.Store, "`name` of the Store that has the model of IAM, as store-sync is told")
}

// Validate says what is wrong and what to do about it.
func (c *Config) Validate() error {
	var store error
	if wrong := validation.IsDNS1123Subdomain(c.Store); len(wrong) > 0 {
		store = fmt.Errorf("--iam-store %.100q: %s", c.Store, wrong[0])
	}
	return errors.Join(c.Config.Validate(), store)
}
