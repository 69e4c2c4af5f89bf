package discovery

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// Config selects the resources of the API server that go into models.
type Config struct {
	// Ordinary and Privileged are group-versions such as "apps/v1". Their modules follow the template of that name.
	Ordinary, Privileged []string
	// AccountType is the type that a core module must define for its store to get these modules.
	AccountType string
}

// Defaults returns the default settings.
func Defaults() Config {
	return Config{
		Ordinary:    []string{"v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1", "apis.kcp.io/v1alpha1", "ui.platform-mesh.io/v1alpha1"},
		Privileged:  []string{"rbac.authorization.k8s.io/v1"},
		AccountType: corev1alpha1.AccountType,
	}
}

// BindFlags registers a flag for every setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.Ordinary, "discover", c.Ordinary,
		"`group/version` whose resources get a type in every store's model; separate several by commas; groups that the API server does not serve are ignored")
	fs.StringSliceVar(&c.Privileged, "discover-privileged", c.Privileged,
		"`group/version` as in --discover, but only owners may change the objects, bind and escalate")
	fs.StringVar(&c.AccountType, "account-type", c.AccountType,
		"`type` of accounts; a store gets the modules of --discover only if its core module defines it")
}

// Validate returns every invalid setting, each with the correction.
func (c *Config) Validate() error {
	var errs []error
	if err := plan.ValidateTypeName(c.AccountType); err != nil {
		errs = append(errs, fmt.Errorf("--account-type: %w", err))
	}
	seen := map[string]bool{}
	for _, name := range slices.Concat(c.Ordinary, c.Privileged) {
		if gv, err := schema.ParseGroupVersion(name); err != nil || gv.Version == "" || gv.String() != name {
			errs = append(errs, fmt.Errorf("--discover and --discover-privileged: %.100q is not a group/version, such as apps/v1", name))
		}
		if seen[name] {
			errs = append(errs, fmt.Errorf("--discover and --discover-privileged: %s is named twice", name))
		}
		seen[name] = true
	}
	return errors.Join(errs...)
}
