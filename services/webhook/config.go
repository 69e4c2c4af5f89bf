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

// Config holds the settings of webhook. Start from [Defaults].
type Config struct {
	service.Config
	// Store is the name of the Store with the model of IAM.
	Store string
	// UnobservedTargets is refuse or trust. It decides whether bindings act on objects of kinds that the watcher does
	// not follow.
	UnobservedTargets string
	// MaxStaleness bounds the age of the state from which questions are answered.
	MaxStaleness time.Duration
	// Admission configures the admission webhooks. Without them, no check ensures that users give only rights that they
	// have.
	Admission admission.Config
	// Subject is the field that identifies a User: the UID, or the name if there is no UID. See [ByUIDOrName].
	Subject string
	// AccountNames is a regular expression of the whole names of callers whose UID is that of a ServiceAccount.
	AccountNames string
	// Anonymous lets bindings on the groups of unauthenticated users take effect.
	Anonymous bool
	// TrustParents lets the extras of a request define the parent of an object.
	TrustParents bool
	// Authorizer configures the authorization webhook of the API server.
	Authorizer authorizer.Config
	// Decide is index or openfga, the backend that decides. Verify is the share of index answers that are compared with
	// OpenFGA.
	Decide string
	Verify float64
	// Cached bounds the answers of OpenFGA that are kept if OpenFGA decides.
	Cached int
	// OpenFGA configures the server. It is used only if Decide or Verify requires it.
	OpenFGA fga.Config
}

// needsOpenFGA reports whether OpenFGA is needed.
func (c *Config) needsOpenFGA() bool { return c.Decide == byOpenFGA || c.Verify > 0 }

// maxCached bounds Cached. An answer usually takes half a kilobyte of memory.
const maxCached = 1 << 24

// Values of Config.Decide.
const (
	byIndex   = "index"
	byOpenFGA = "openfga"
)

// Values of Config.UnobservedTargets.
const (
	refuse = "refuse"
	trust  = "trust"
)

// ByUIDOrName identifies a caller without a UID by name.
const ByUIDOrName = review.ByUIDOrName

// minStaleness is the smallest MaxStaleness. It allows for the interval of the watcher's barriers, one second.
const minStaleness = 2 * time.Second

// Defaults returns the default of every setting.
func Defaults() Config {
	return Config{
		Config: service.Defaults(), Store: "iam", UnobservedTargets: refuse, Subject: review.ByUID,
		MaxStaleness: 15 * time.Second, Admission: admission.Defaults(), Authorizer: authorizer.Defaults(),
		Decide: byIndex, Cached: 65536,
	}
}

// BindFlags adds a flag for every setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.StringVar(&c.Store, "iam-store", c.Store, "`name` of the Store with the model of IAM; give store-sync the same name")
	fs.StringVar(&c.UnobservedTargets, "unobserved-targets", c.UnobservedTargets,
		"refuse or trust: whether bindings on single objects take effect if the watcher does not follow the kind; give tuple-sync the same value")
	fs.DurationVar(&c.MaxStaleness, "max-staleness", c.MaxStaleness,
		"how old the data may be, by the watcher's barriers; with older data webhook answers 503")
	c.Admission.BindFlags(fs)
	fs.StringVar(&c.Subject, "subject", c.Subject,
		"uid or uid-or-name: uid-or-name finds the User of a caller without a UID by name")
	fs.StringVar(&c.AccountNames, "account-names", c.AccountNames,
		"regular `expression` of whole user names that are ServiceAccounts by their UID, beside system:serviceaccount:…, such as .+@accounts\\.example\\.com")
	fs.BoolVar(&c.Anonymous, "allow-anonymous", c.Anonymous, "bindings on the groups system:unauthenticated and system:anonymous take effect")
	fs.BoolVar(&c.TrustParents, "trust-parent-context", c.TrustParents,
		"use the extras iam.miloapis.com/parent-* of a request as parents of an unknown object; set it only if the API server itself sets these extras")
	c.Authorizer.BindFlags(fs)
	fs.StringVar(&c.Decide, "decide", c.Decide,
		"index decides from memory; openfga also asks OpenFGA, at a cost that grows with the roles and groups on an object")
	fs.Float64Var(&c.Verify, "verify", c.Verify, "`share` of answers that are also compared with OpenFGA, 0 to 1; no request waits for the comparison")
	fs.IntVar(&c.Cached, "cached-decisions", c.Cached,
		"answers of OpenFGA to cache with --decide=openfga; each is used for at most a minute, while the authorization index agrees; 0 caches none")
	c.OpenFGA.BindFlags(fs)
}

// Validate returns an error that lists each invalid setting with its remedy.
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
	_, accounts := review.CompileAccountNames(c.AccountNames)
	if accounts != nil {
		accounts = fmt.Errorf("--account-names: %w", accounts)
	}
	var staleness error
	if c.MaxStaleness < minStaleness {
		staleness = fmt.Errorf("--max-staleness %s: the watcher writes one barrier a second: use at least %s", c.MaxStaleness, minStaleness)
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
		return fmt.Errorf("--verify needs --decide=%s: drop one of them", byIndex)
	case c.Cached < 0 || c.Cached > maxCached:
		return fmt.Errorf("--cached-decisions %d: use 0 to %d", c.Cached, maxCached)
	case !c.needsOpenFGA():
		return nil
	}
	return c.OpenFGA.Validate()
}
