package watcher

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Config holds the settings of the watcher. Start from [Defaults].
type Config struct {
	service.Config
	// Kinds lists the kinds to follow, as resource.group. If empty, the watcher follows all kinds that a service
	// consumes.
	Kinds []string
	// SecretNamespaces are the namespaces in which the watcher follows the Secrets that users and clusters of
	// OpenSearch name. The watcher needs the right to list and watch Secrets there.
	SecretNamespaces []string
	// StreamReplicas is the number of copies of every stream: 1 for a single NATS server, 3 or 5 in a cluster. A stream
	// with more copies keeps them.
	StreamReplicas int
	// Publishers bounds the concurrent publications.
	Publishers int
	// TombstoneTTL is how long the stream keeps a deletion. It must be longer than any outage of a service.
	TombstoneTTL time.Duration
	// LeaseNamespace and LeaseName identify the Lease by which replicas elect their leader.
	LeaseNamespace, LeaseName string
	// Identity names this replica in the election, and must be unique among running replicas. A replica that restarts
	// with the identity of its dead predecessor need not wait for the old lease to expire. The default is a random
	// name.
	Identity string
}

// maxSecretNamespaces bounds the watches of Secrets.
const maxSecretNamespaces = 100

// minTombstoneTTL bounds TombstoneTTL from below. A planned outage of a service must be shorter.
const minTombstoneTTL = time.Hour

// Defaults returns the default settings.
func Defaults() Config {
	c := Config{
		Config: service.Defaults(), StreamReplicas: 1, Publishers: 64, TombstoneTTL: topology.TombstoneTTL,
		LeaseNamespace: cmp.Or(os.Getenv("POD_NAMESPACE"), rbac.Namespace), LeaseName: rbac.WatcherLease,
		Identity: os.Getenv("POD_NAME"),
	}
	// The watcher detects all known faults of the stream at once. The resync is for unknown ones.
	c.Resync = 24 * time.Hour
	return c
}

// BindFlags registers a flag for every setting.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.StringSliceVar(&c.Kinds, "kinds", c.Kinds, "`resource.group` to follow, several separated by commas (default all that services consume)")
	fs.StringSliceVar(&c.SecretNamespaces, "secret-namespaces", c.SecretNamespaces,
		"`namespaces`, separated by commas, in which the watcher follows the Secrets that objects of OpenSearch name; "+
			"it publishes their names and versions only, and needs the right to list and watch Secrets there")
	fs.IntVar(&c.StreamReplicas, "stream-replicas", c.StreamReplicas,
		"copies of every stream: 1, 3 or 5, at most the number of NATS servers; a stream with more copies keeps them")
	fs.IntVar(&c.Publishers, "publishers", c.Publishers, "how many changes to publish at a time")
	fs.DurationVar(&c.TombstoneTTL, "tombstone-ttl", c.TombstoneTTL, "how long the bus keeps a deletion")
	fs.StringVar(&c.LeaseNamespace, "lease-namespace", c.LeaseNamespace,
		"`namespace` of the Lease by which replicas elect their leader (POD_NAMESPACE, if set)")
	fs.StringVar(&c.LeaseName, "lease-name", c.LeaseName, "`name` of that Lease")
	fs.StringVar(&c.Identity, "identity", c.Identity,
		"`name` of this replica in the election; every running replica needs its own (default the name of the pod, or a random one)")
}

// Validate returns every invalid setting, each with the correction.
func (c Config) Validate() error {
	_, kinds := c.configuredKinds()
	errs := []error{c.Config.Validate(), kinds, c.checkSecretNamespaces()}
	if c.StreamReplicas != 1 && c.StreamReplicas != 3 && c.StreamReplicas != 5 {
		errs = append(errs, fmt.Errorf("--stream-replicas %d: use 1, 3 or 5", c.StreamReplicas))
	}
	if c.Publishers < 1 || c.Publishers > 1024 {
		errs = append(errs, fmt.Errorf("--publishers %d: use 1 to 1024", c.Publishers))
	}
	if c.TombstoneTTL < minTombstoneTTL {
		errs = append(errs, fmt.Errorf("--tombstone-ttl %s: use at least %s, a service that is down for longer misses deletions",
			c.TombstoneTTL, minTombstoneTTL))
	}
	if c.LeaseNamespace == "" || c.LeaseName == "" {
		errs = append(errs, errors.New("--lease-namespace and --lease-name must not be empty"))
	}
	return errors.Join(errs...)
}

func (c Config) checkSecretNamespaces() error {
	var errs []error
	if len(c.SecretNamespaces) > maxSecretNamespaces {
		errs = append(errs, fmt.Errorf("--secret-namespaces: %d are too many, use at most %d", len(c.SecretNamespaces), maxSecretNamespaces))
	}
	for i, namespace := range c.SecretNamespaces {
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("--secret-namespaces: %.63q is not a namespace: %s", namespace, strings.Join(wrong, ", ")))
		}
		if slices.Contains(c.SecretNamespaces[:i], namespace) {
			errs = append(errs, fmt.Errorf("--secret-namespaces: %s is listed twice", namespace))
		}
	}
	return errors.Join(errs...)
}

// configuredKinds returns the kinds of the configured names.
func (c Config) configuredKinds() ([]kinds.Kind, error) {
	all := kinds.ConsumedKinds()
	if len(c.Kinds) == 0 {
		return all, nil
	}
	var chosen []kinds.Kind
	for _, name := range c.Kinds {
		i := slices.IndexFunc(all, func(k kinds.Kind) bool { return k.GroupResource.String() == name })
		if i < 0 {
			var known []string
			for _, k := range all {
				known = append(known, k.GroupResource.String())
			}
			return nil, fmt.Errorf("--kinds: no service consumes %q; choose from %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
