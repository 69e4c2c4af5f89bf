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

// Config is what the watcher can be told. Start from [Defaults].
type Config struct {
	service.Config
	// Kinds to follow, as resource.group; all that some service consumes when empty.
	Kinds []string
	// SecretNamespaces are those in which Secrets are followed that users and clusters of OpenSearch name; where they are,
	// the watcher needs the right to list and watch them.
	SecretNamespaces []string
	// StreamReplicas of every stream: 1 for a single NATS server, 3 in a cluster of them. More than
	// that stay: they are not lowered.
	StreamReplicas int
	// Publishers publish at a time.
	Publishers int
	// TombstoneTTL is how long the bus keeps a deletion: longer than any service may be down.
	TombstoneTTL time.Duration
	// LeaseNamespace and LeaseName say where the replicas elect their leader.
	LeaseNamespace, LeaseName string
	// Identity names this replica in the election. No two that run may share one, but one
	// that is started again in another's place does well to: it then need not wait until
	// the lease of the dead one has expired. Random when empty.
	Identity string
}

// maxSecretNamespaces bounds the watches of Secrets.
const maxSecretNamespaces = 100

// minTombstoneTTL is less than any planned outage of a service.
const minTombstoneTTL = time.Hour

// Defaults is the one place where defaults are.
func Defaults() Config {
	c := Config{
		Config: service.Defaults(), StreamReplicas: 1, Publishers: 64, TombstoneTTL: topology.TombstoneTTL,
		LeaseNamespace: cmp.Or(os.Getenv("POD_NAMESPACE"), rbac.Namespace), LeaseName: rbac.Lease,
		Identity: os.Getenv("POD_NAME"),
	}
	// Whatever can go wrong with the stream is noticed at once; this is for what cannot.
	c.Resync = 24 * time.Hour
	return c
}

// BindFlags makes every setting a flag.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	c.Config.BindFlags(fs)
	fs.StringSliceVar(&c.Kinds, "kinds", c.Kinds, "`resource.group` to follow, several separated by commas (default all that services consume)")
	fs.StringSliceVar(&c.SecretNamespaces, "secret-namespaces", c.SecretNamespaces, "`namespaces`, separated by commas, in which Secrets are followed, "+
		"each as its name and version, that users and clusters of OpenSearch name; the watcher needs the right to list and watch Secrets there")
	fs.IntVar(&c.StreamReplicas, "stream-replicas", c.StreamReplicas,
		"copies of every stream: 1, 3 or 5, at most as many as there are NATS servers; more than that stay as they are")
	fs.IntVar(&c.Publishers, "publishers", c.Publishers, "how many changes to publish at a time")
	fs.DurationVar(&c.TombstoneTTL, "tombstone-ttl", c.TombstoneTTL, "how long the bus keeps a deletion")
	fs.StringVar(&c.LeaseNamespace, "lease-namespace", c.LeaseNamespace,
		"`namespace` of the Lease by which replicas elect their leader (POD_NAMESPACE, if set)")
	fs.StringVar(&c.LeaseName, "lease-name", c.LeaseName, "`name` of that Lease")
	fs.StringVar(&c.Identity, "identity", c.Identity,
		"`name` of this replica in the election, unlike that of any other that runs (default that of the pod, or random)")
}

// Validate says what is wrong and what to do about it.
func (c Config) Validate() error {
	_, kinds := c.kinds()
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
			errs = append(errs, fmt.Errorf("--secret-namespaces: %.63q is no namespace: %s", namespace, strings.Join(wrong, ", ")))
		}
		if slices.Contains(c.SecretNamespaces[:i], namespace) {
			errs = append(errs, fmt.Errorf("--secret-namespaces: %s is there twice", namespace))
		}
	}
	return errors.Join(errs...)
}

// kinds resolves the names of kinds.
func (c Config) kinds() ([]kinds.Kind, error) {
	all := kinds.All()
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
