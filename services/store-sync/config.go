package storesync

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/store-sync/apimodule/discovery"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Config holds the settings of store-sync. Start from [Defaults].
type Config struct {
	setup.Config
	OpenFGA fga.Config
	// Limits bound the model of a store. They must equal the limits of the OpenFGA server.
	Limits model.Limits
	// IAMStore is the name of the Store for IAM.
	IAMStore string
	// Discovery selects the resources of the API server that go into models.
	Discovery discovery.Config
	// Admission configures the webhooks that check texts on write. Without it an invalid text is reported only in a
	// condition.
	Admission admission.Config
}

// Defaults returns the default settings.
func Defaults() Config {
	return Config{
		Config: setup.Defaults(), Limits: model.Limits{}.OrDefault(), IAMStore: "iam", Discovery: discovery.Defaults(),
		Admission: admission.Defaults(),
	}
}

// BindFlags registers a flag for every setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	c.OpenFGA.BindFlags(fs)
	c.Discovery.BindFlags(fs)
	fs.StringVar(&c.IAMStore, "iam-store", c.IAMStore, "Store with the model of protected kinds and their permissions; store-sync creates it if it is missing")
	c.Admission.BindFlags(fs)
	fs.IntVar(&c.Limits.Types, "max-model-types", c.Limits.Types, "types in one model; OpenFGA's --max-types-per-authorization-model")
	fs.IntVar(&c.Limits.Bytes, "max-model-bytes", c.Limits.Bytes, "size of one model; OpenFGA's --max-authorization-model-size-in-bytes")
}

// Validate returns every invalid setting, each with the correction.
func (c *Config) Validate() error {
	var limits error
	if c.Limits.Types < 0 || c.Limits.Bytes < 0 {
		limits = fmt.Errorf("--max-model-types %d and --max-model-bytes %d must not be negative: use 0 for the defaults", c.Limits.Types, c.Limits.Bytes)
	}
	iamStore := fga.ValidateStoreName(c.IAMStore)
	if iamStore != nil {
		iamStore = fmt.Errorf("--iam-store: %w", iamStore)
	}
	return errors.Join(c.Config.Validate(), c.OpenFGA.Validate(), c.Discovery.Validate(), c.Admission.Validate(), limits, iamStore)
}
