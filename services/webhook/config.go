package webhook

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/entail-dev/entail/services/internal/service"
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
	// Subject says what names a User: the UID that the authenticator gives, or the name of who has none, too.
	Subject string
}

// What becomes of bindings on what cannot be looked for.
const (
	refuse = "refuse"
	trust  = "trust"
)

// minStaleness leaves out no heartbeat of a watcher that runs.
const minStaleness = 2 * time.Second

// Defaults is the one place where defaults are.
func Defaults() Config {
	return Config{Config: service.Defaults(), Store: "iam", UnobservedTargets: refuse, Subject: byUID, MaxStaleness: 15 * time.Second}
}

// BindFlags makes every setting a flag.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.StringVar(&c.Store, "iam-store", c.Store, "`name` of the Store that has the model of IAM, as store-sync is told")
	fs.StringVar(&c.UnobservedTargets, "unobserved-targets", c.UnobservedTargets,
		"refuse or trust: whether bindings on single objects of kinds that are not followed act, as tuple-sync is told")
	fs.DurationVar(&c.MaxStaleness, "max-staleness", c.MaxStaleness,
		"how old the state may be that is answered from, by the watcher's heartbeats; beyond it nothing is answered")
	fs.StringVar(&c.Subject, "subject", c.Subject,
		"uid or uid-or-name: whether a caller without a UID is the User of their name")
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
	if c.Subject != byUID && c.Subject != byUIDOrName {
		subject = fmt.Errorf("--subject %.100q: use %s or %s", c.Subject, byUID, byUIDOrName)
	}
	var staleness error
	if c.MaxStaleness < minStaleness {
		staleness = fmt.Errorf("--max-staleness %s: the watcher tells once a second how far it is: use at least %s", c.MaxStaleness, minStaleness)
	}
	return errors.Join(c.Config.Validate(), store, targets, subject, staleness)
}
