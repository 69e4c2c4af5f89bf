package webhook

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/webhook/internal/authorizer"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

// Config is what webhook can be told. Start from [Defaults].
type Config struct {
	service.Config
	// Store is the name of the Store that has the model of IAM.
	Store string
	// UnobservedTargets is what becomes of bindings on objects of kinds that nobody follows: refuse or trust.
	UnobservedTargets string
	// MaxStaleness is how old the state may be that is answered from.
	MaxStaleness time.Duration
	// Admission is where the API server asks who may give rights. Without it nobody is asked whether they have what they give.
	Admission admission.Config
	// Subject says what names a User: the UID that the authenticator gives, or the name of who has none, too.
	Subject string
	// AccountNames is a regular expression of the whole names of callers whose UID is that of a ServiceAccount.
	AccountNames string
	// Anonymous says that bindings on the groups of everybody, whoever they are, act.
	Anonymous bool
	// TrustParents says that the API server is believed what an object is of.
	TrustParents bool
	// Authorizer is where the API server asks.
	Authorizer authorizer.Config
	// Decide says who decides: the index, or OpenFGA. Verify is the share of the index's answers that OpenFGA is asked about, too.
	Decide string
	Verify float64
	// Cached is how many of OpenFGA's answers are kept where it decides.
	Cached int
	// OpenFGA is asked only then.
	OpenFGA fga.Config
}

// asksOpenFGA says whether OpenFGA is needed.
func (c *Config) asksOpenFGA() bool { return c.Decide == byOpenFGA || c.Verify > 0 }

// maxCached bounds what kept answers take of memory: half a kilobyte each, as a rule.
const maxCached = 1 << 24

// Who decides.
const (
	byIndex   = "index"
	byOpenFGA = "openfga"
)

// What becomes of bindings on what cannot be looked for.
const (
	refuse = "refuse"
	trust  = "trust"
)

// ByUIDOrName makes a caller without a UID the User of their name.
const ByUIDOrName = review.ByUIDOrName

// minStaleness leaves out no heartbeat of a watcher that runs.
const minStaleness = 2 * time.Second

// Defaults is the one place where defaults are.
func Defaults() Config {
	return Config{
		Config: service.Defaults(), Store: "iam", UnobservedTargets: refuse, Subject: review.ByUID,
		MaxStaleness: 15 * time.Second, Admission: admission.Defaults(), Authorizer: authorizer.Defaults(),
		Decide: byIndex, Cached: 65536,
	}
}

// BindFlags makes every setting a flag.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.StringVar(&c.Store, "iam-store", c.Store, "`name` of the Store that has the model of IAM, as store-sync is told")
	fs.StringVar(&c.UnobservedTargets, "unobserved-targets", c.UnobservedTargets,
		"refuse or trust: whether bindings on single objects of kinds that are not followed act, as tuple-sync is told")
	fs.DurationVar(&c.MaxStaleness, "max-staleness", c.MaxStaleness,
		"how old the state may be that is answered from, by the watcher's heartbeats; beyond it nothing is answered")
	c.Admission.BindFlags(fs)
	fs.StringVar(&c.Subject, "subject", c.Subject,
		"uid or uid-or-name: whether a caller without a UID is the User of their name")
	fs.StringVar(&c.AccountNames, "account-names", c.AccountNames,
		"regular `expression` of whole user names that are ServiceAccounts by their UID, beside system:serviceaccount:…, such as .+@accounts\\.example\\.com")
	fs.BoolVar(&c.Anonymous, "allow-anonymous", c.Anonymous, "bindings on the groups system:unauthenticated and system:anonymous act")
	fs.BoolVar(&c.TrustParents, "trust-parent-context", c.TrustParents,
		"believe the extras of a request what an object is of, where nothing is known of it; only where the API server itself sets them")
	c.Authorizer.BindFlags(fs)
	fs.StringVar(&c.Decide, "decide", c.Decide, "index or openfga: who decides; the cost of asking OpenFGA grows with the roles and groups on an object")
	fs.Float64Var(&c.Verify, "verify", c.Verify, "`share` of the index's answers that OpenFGA is asked about, too, 0 to 1; nobody waits for that")
	fs.IntVar(&c.Cached, "cached-decisions", c.Cached,
		"how many of OpenFGA's answers are kept with --decide=openfga, each as long as the index says the same, a minute at most; 0 for none")
	c.OpenFGA.BindFlags(fs)
}

// Validate says what is wrong and what to do about it.
func (c *Config) Validate() error {
	var store error
	if wrong := validation.IsDNS1123Subdomain(c.Store); len(wrong) > 0 {
		store = fmt.Errorf("--iam-store %.100q: %s", c.Store, wrong[0])
	}
	var targets error
	if c.UnobservedTargets != refuse && c.UnobservedTargets != trust {
		targets = fmt.Errorf("--unobserved-targets %.100q: use %s or %s", c.UnobservedTargets, refuse, trust)
	}
	var subject error
	if c.Subject != review.ByUID && c.Subject != review.ByUIDOrName {
		subject = fmt.Errorf("--subject %.100q: use %s or %s", c.Subject, review.ByUID, review.ByUIDOrName)
	}
	_, accounts := review.AccountNames(c.AccountNames)
	if accounts != nil {
		accounts = fmt.Errorf("--account-names: %w", accounts)
	}
	var staleness error
	if c.MaxStaleness < minStaleness {
		staleness = fmt.Errorf("--max-staleness %s: the watcher tells once a second how far it is: use at least %s", c.MaxStaleness, minStaleness)
	}
	return errors.Join(c.Config.Validate(), c.Admission.Validate(), store, targets, subject, accounts, staleness, c.Authorizer.Validate(), c.validateDecision())
}

func (c *Config) validateDecision() error {
	switch {
	case c.Decide != byIndex && c.Decide != byOpenFGA:
		return fmt.Errorf("--decide %.100q: use %s or %s", c.Decide, byIndex, byOpenFGA)
	case c.Verify < 0 || c.Verify > 1 || c.Verify != c.Verify:
		return fmt.Errorf("--verify %v: use a share of 0 to 1", c.Verify)
	case c.Verify > 0 && c.Decide != byIndex:
		return fmt.Errorf("--verify compares what the index answers: give --decide=%s, or no --verify", byIndex)
	case c.Cached < 0 || c.Cached > maxCached:
		return fmt.Errorf("--cached-decisions %d: use 0 to %d", c.Cached, maxCached)
	case !c.asksOpenFGA():
		return nil
	}
	return c.OpenFGA.Validate()
}
