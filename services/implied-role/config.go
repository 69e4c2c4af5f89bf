package impliedrole

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/projection"
	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/setup"
)

// Config holds the settings of implied-role. Start from [Defaults].
type Config struct {
	setup.Config
	Policy infer.Policy
	// Writers bounds the writes in parallel.
	Writers int
	// ProjectStore is the name of an OpenFGA store to which rules are written too. Empty means none.
	ProjectStore string
	// ProjectRoles is the type of roles in the model of that store, and their relation to their holders.
	ProjectRoles string
	// Admission configures the webhooks that check the authors of rules and bindings. Without them no rule holds,
	// unless WithoutGuard is set because all authors are trusted.
	Admission    admission.Config
	WithoutGuard bool
	// OpenFGA configures the server of ProjectStore.
	OpenFGA fga.Config
}

// Bounds of settings.
const (
	defaultWriters = 32
	maxWriters     = 1024
)

// Defaults returns the default of every setting.
func Defaults() Config {
	return Config{
		Config: setup.Defaults(), Policy: infer.DefaultPolicy(), Writers: defaultWriters, ProjectRoles: "role#assignee",
		Admission: admission.Defaults(),
	}
}

// BindFlags adds a flag for every setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.StringSliceVar(&c.Policy.Prohibited, "prohibited", c.Policy.Prohibited,
		"`roles` that no rule may imply: a name, or a prefix and *; Role/ or ClusterRole/ limits it to one kind; the admission policy has the same list")
	fs.StringSliceVar(&c.Policy.Excluded, "exclude-namespaces", c.Policy.Excluded, "`namespaces` in which no rule holds")
	fs.IntVar(&c.Policy.MaxGenerated, "max-generated", c.Policy.MaxGenerated, "how many RoleBindings one rule may create; beyond that no RoleBinding is added")
	fs.IntVar(&c.Policy.MaxRules, "max-rules", c.Policy.MaxRules, "how many rules of a namespace are in force; the oldest come first")
	fs.StringVar(&c.ProjectStore, "project-store", c.ProjectStore, "`name` of an OpenFGA store into which the implied roles are also written as tuples")
	fs.StringVar(&c.ProjectRoles, "project-roles", c.ProjectRoles,
		"`type#relation` of roles in the model of --project-store; the relation must accept itself as a user")
	c.OpenFGA.BindFlags(fs)
	c.Admission.BindFlags(fs)
	fs.BoolVar(&c.WithoutGuard, "without-guard", c.WithoutGuard,
		"accept rules although no webhook checks their authors; users who may write a rule can then give any role")
	fs.IntVar(&c.Writers, "writers", c.Writers, "how many changes to make at the API server at a time")
}

// Validate returns an error that lists each invalid setting with its remedy.
func (c *Config) Validate() error {
	errs := []error{c.Config.Validate(), c.Admission.Validate()}
	if c.WithoutGuard && c.Admission.Enabled() {
		errs = append(errs, errors.New("--without-guard: leave it out, or --admission-url and --admission-service"))
	}
	if c.Policy.MaxGenerated < 1 || c.Policy.MaxRules < 1 {
		errs = append(errs, fmt.Errorf("--max-generated %d and --max-rules %d: use at least 1", c.Policy.MaxGenerated, c.Policy.MaxRules))
	}
	if c.Writers < 1 || c.Writers > maxWriters {
		errs = append(errs, fmt.Errorf("--writers %d: use 1 to %d", c.Writers, maxWriters))
	}
	if c.ProjectStore != "" {
		if _, ok := projection.ParseRoleRelation(c.ProjectRoles); !ok {
			errs = append(errs, fmt.Errorf("--project-roles %.100q: name a type and a relation, such as role#assignee", c.ProjectRoles))
		}
		errs = append(errs, c.OpenFGA.Validate())
	}
	return errors.Join(errs...)
}
