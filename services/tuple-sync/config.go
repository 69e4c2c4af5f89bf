package tuplesync

import (
	"errors"
	"fmt"
	"time"

	"github.com/openfga/openfga/pkg/tuple"
	"github.com/spf13/pflag"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/tuple-sync/internal/query"
)

// Config holds the settings of tuple-sync. Start from [Defaults].
type Config struct {
	setup.Config
	OpenFGA fga.Config
	// AllowMemberTuples makes every authenticated user a member of accounts of AccountType.
	AllowMemberTuples bool
	AccountType       string
	// IAMStore is the name of the Store for IAM.
	IAMStore string
	// UnobservedTargets decides about bindings on single objects of kinds that the watcher does not follow: refuse or
	// trust.
	UnobservedTargets string
	// RemovedTuplesRetention is the time for which a Store records removed tuples; zero records none.
	RemovedTuplesRetention time.Duration
	// ListLimits are the limits of OpenFGA for lists of objects and users. They must not exceed those of the server.
	ListLimits query.ListLimits
}

// Values of UnobservedTargets.
const (
	refuse = "refuse"
	trust  = "trust"
)

// maxRetention bounds RemovedTuplesRetention.
const maxRetention = 366 * 24 * time.Hour

// Defaults returns the defaults of all settings.
func Defaults() Config {
	return Config{
		Config: setup.Defaults(), AccountType: corev1alpha1.AccountType, IAMStore: "iam", UnobservedTargets: refuse,
		RemovedTuplesRetention: 30 * 24 * time.Hour, ListLimits: query.ListLimits{Deadline: 3 * time.Second, Results: 1000},
	}
}

// BindFlags defines a flag for every setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	c.OpenFGA.BindFlags(fs)
	fs.BoolVar(&c.AllowMemberTuples, "allow-member-tuples-enabled", c.AllowMemberTuples,
		"make every authenticated user a member of the account in a Store's label "+corev1alpha1.AccountNameLabel+", and of kcp organizations")
	fs.StringVar(&c.IAMStore, "iam-store", c.IAMStore, "Store with the tuples of roles, bindings, groups and users")
	fs.StringVar(&c.UnobservedTargets, "unobserved-targets", c.UnobservedTargets,
		"refuse or trust: whether bindings on single objects take effect if the watcher does not follow the kind; trust means that the object need not exist")
	fs.DurationVar(&c.RemovedTuplesRetention, "removed-tuples-retention", c.RemovedTuplesRetention,
		"how long Stores record removed tuples, which are removed again if a restore of OpenFGA brings them back; 0 records none")
	fs.DurationVar(&c.ListLimits.Deadline, "openfga-list-deadline", c.ListLimits.Deadline,
		"time after which a list of objects or users counts as incomplete; at most the server's --listObjects-deadline and --listUsers-deadline")
	fs.IntVar(&c.ListLimits.Results, "openfga-list-max-results", c.ListLimits.Results,
		"results at which such a list counts as incomplete; at most the server's --listObjects-max-results and --listUsers-max-results")
	fs.StringVar(&c.AccountType, "account-type", c.AccountType, "`type` of accounts in models")
}

// Validate returns an error that names each wrong setting and the remedy.
func (c *Config) Validate() error {
	var accountType error
	if c.AllowMemberTuples && !tuple.IsValidObject(c.AccountType+":x") {
		accountType = fmt.Errorf("--account-type %.100q: use the name of a type, such as %s", c.AccountType, corev1alpha1.AccountType)
	}
	var targets error
	if c.UnobservedTargets != refuse && c.UnobservedTargets != trust {
		targets = fmt.Errorf("--unobserved-targets %.100q: use %s or %s", c.UnobservedTargets, refuse, trust)
	}
	var retention error
	if c.RemovedTuplesRetention < 0 || c.RemovedTuplesRetention > maxRetention {
		retention = fmt.Errorf("--removed-tuples-retention %s: use 0 to %s", c.RemovedTuplesRetention, maxRetention)
	}
	var lists error
	if c.ListLimits.Deadline <= 0 || c.ListLimits.Results <= 0 {
		lists = errors.New("--openfga-list-deadline and --openfga-list-max-results: use values above 0, as the server does")
	}
	iamStore := fga.ValidateStoreName(c.IAMStore)
	if iamStore != nil {
		iamStore = fmt.Errorf("--iam-store: %w", iamStore)
	}
	return errors.Join(c.Config.Validate(), c.OpenFGA.Validate(), accountType, iamStore, targets, retention, lists)
}
