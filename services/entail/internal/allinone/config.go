package allinone

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
	storesync "github.com/entail-dev/entail/services/store-sync"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
	"github.com/entail-dev/entail/services/watcher"
	"github.com/entail-dev/entail/services/webhook"
)

// Config configures [Run]. Start from [Defaults].
type Config struct {
	// StateDir holds everything that survives a restart, and the logs.
	StateDir string
	Ports    Ports
	// Cluster is the name of the cluster in the stream, and in references to its Stores.
	Cluster  string
	Services ServicesConfig
	// Kubeconfig is the kubeconfig file of an external cluster. UseCluster selects the cluster that kubectl would use.
	// Without both, a local API server is started.
	Kubeconfig string
	UseCluster bool
	// AdmissionURL is the URL at which the API server of an external cluster reaches this machine. Without it, that API
	// server cannot check the authors of ImpliedRoles, and no rule is in force there.
	AdmissionURL string
	// OpenSearch starts an OpenSearch beside the local API server. It must be installed.
	OpenSearch bool
	// Manifests is the directory with crd/, admission/ and base/; empty means the manifests in this program.
	Manifests string
	// Samples is a file or directory of objects to create where they are missing, or [BuiltIn].
	Samples string
	// Progress receives progress and warnings as text for people.
	Progress io.Writer
	// Ready is called once everything serves.
	Ready func(Endpoints) error

	// authorization is the file with the authorizers of the local API server.
	authorization string
}

// BuiltIn is the value of [Config.Samples] for the samples in this program.
const BuiltIn = "builtin"

// Ports holds the ports on loopback; 0 takes a free one.
type Ports struct {
	Kube, NATS, OpenFGA, OpenFGAHTTP, Watcher, StoreSync, TupleSync, ImpliedRole, Admission, StoreAdmission, Webhook, Authorizer, WebhookAdmission,
	OpenSearchSync, OpenSearch int
}

// Defaults returns the default settings. Most ports are well-known ones plus 10,000, which seldom clash.
func Defaults() Config {
	services := ServicesConfig{
		Watcher: watcher.Defaults(), StoreSync: storesync.Defaults(), TupleSync: tuplesync.Defaults(), ImpliedRole: impliedrole.Defaults(),
		Webhook: webhook.Defaults(), OpenSearchSync: opensearchsync.Defaults(),
	}
	services.Webhook.Subject = webhook.ByUIDOrName // Certificates and `kubectl --as` carry only names.
	return Config{
		StateDir: ".entail",
		Cluster:  services.Watcher.Cluster,
		Services: services,
		Ports: Ports{
			Kube: 16443, NATS: 14222, OpenFGA: 18081, OpenFGAHTTP: 18080,
			Watcher: 18091, StoreSync: 18092, TupleSync: 18093, ImpliedRole: 18094, Admission: 18095, StoreAdmission: 18096, Webhook: 18097,
			Authorizer: 18099, WebhookAdmission: 18100, OpenSearchSync: 18098, OpenSearch: 19200,
		},
	}
}

// BindFlags binds every setting to a flag.
func (c *Config) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.StateDir, "state-dir", c.StateDir, "`directory` for all state and logs")
	fs.StringVar(&c.Cluster, "cluster", c.Cluster,
		"`name` of the cluster, as in spec.storeRef.cluster of objects; the state keeps the name of the first start")
	fs.Var(c.Services.newServiceFlags(), "set", "flag of a service, such as tuple-sync.allow-member-tuples-enabled=true; repeatable")
	fs.StringVar(&c.Kubeconfig, "kubeconfig", "",
		"kubeconfig `file` of your cluster, to use instead of a local API server; "+
			"up applies CRDs, admission policies and the accounts of services to it")
	fs.BoolVar(&c.UseCluster, "use-cluster", false, "use the cluster of KUBECONFIG and its current context, as with --kubeconfig")
	fs.StringVar(&c.AdmissionURL, "admission-url", "",
		"`URL` (https://host:port) by which your API server reaches --admission-port of this machine; without it no ImpliedRoles are in force")
	fs.BoolVar(&c.OpenSearch, "opensearch", false,
		"also run OpenSearch (make opensearch installs it); its address and credentials are in Secret "+connectionNamespace+"/"+connectionName)
	fs.StringVar(&c.Manifests, "manifests", "",
		"`directory` with crd/, admission/ and base/ to apply instead of the manifests in this program (entail manifests)")
	fs.StringVar(&c.Samples, "samples", "", "`path` of manifests; missing objects are created. "+BuiltIn+" is the samples in this program")
	for _, p := range c.Ports.allPorts() {
		fs.IntVar(p.number, p.flag, *p.number, "port of "+p.of+" on loopback; 0 takes a free one")
	}
}

// HasExternalCluster reports whether a cluster of the user is used instead of a local API server.
func (c *Config) HasExternalCluster() bool { return c.UseCluster || c.Kubeconfig != "" }

// hasReachableWebhooks reports whether the API server can call the webhooks that check the authors of rules.
func (c *Config) hasReachableWebhooks() bool { return !c.HasExternalCluster() || c.AdmissionURL != "" }

// portSetting is one of the ports, with the flag that sets it.
type portSetting struct {
	number   *int
	flag, of string
}

func (p *Ports) allPorts() []portSetting {
	return []portSetting{
		{&p.Kube, "kube-port", "the Kubernetes API server"},
		{&p.NATS, "nats-port", "NATS"},
		{&p.OpenFGA, "openfga-port", "OpenFGA (gRPC)"},
		{&p.OpenFGAHTTP, "openfga-http-port", "OpenFGA (HTTP)"},
		{&p.Watcher, "watcher-port", "SyncService (watcher)"},
		{&p.StoreSync, "store-sync-port", "StoreService (store-sync)"},
		{&p.TupleSync, "tuple-sync-port", "TupleService (tuple-sync)"},
		{&p.ImpliedRole, "implied-role-port", "InferenceService (implied-role)"},
		{&p.Admission, "admission-port", "the admission webhooks of implied-role"},
		{&p.StoreAdmission, "store-admission-port", "the admission webhooks of store-sync"},
		{&p.Webhook, "webhook-port", "AccessService (webhook)"},
		{&p.Authorizer, "authorizer-port", "the authorization webhook for the API server (service webhook)"},
		{&p.WebhookAdmission, "webhook-admission-port", "the admission webhooks of the service webhook"},
		{&p.OpenSearchSync, "opensearch-sync-port", "OpenSearchService (opensearch-sync, with --opensearch)"},
		{&p.OpenSearch, "opensearch-port", "OpenSearch, with --opensearch"},
	}
}

// validateSettings returns an error for settings that cannot work. The error names the flags to change.
func (c *Config) validateSettings() error {
	errs := []error{c.Services.validateServices(c.Cluster)}
	if c.AdmissionURL != "" && !c.HasExternalCluster() {
		errs = append(errs, errors.New("--admission-url is for a cluster of yours: give --kubeconfig or --use-cluster, too"))
	}
	if c.OpenSearch && c.HasExternalCluster() {
		errs = append(errs, errors.New("--opensearch works with the local API server only: its administrator's key must not reach your cluster"))
	}
	given := map[int]string{}
	for _, p := range c.Ports.allPorts() {
		n := *p.number
		if n == 0 || c.isUnusedPort(p) {
			continue
		}
		if n < 0 || n > 65535 {
			errs = append(errs, fmt.Errorf("--%s %d is out of range: use 1 to 65535, or 0 for a free port", p.flag, n))
			continue
		}
		if other, twice := given[n]; twice {
			errs = append(errs, fmt.Errorf("--%s and --%s are both %d: choose another for one of them", other, p.flag, n))
			continue
		}
		given[n] = p.flag
		errs = append(errs, p.checkFree())
	}
	return errors.Join(errs...)
}

// isUnusedPort reports whether no server listens on p with these settings.
func (c *Config) isUnusedPort(p portSetting) bool {
	switch p.number {
	case &c.Ports.Kube, &c.Ports.StoreAdmission, &c.Ports.Authorizer, &c.Ports.WebhookAdmission:
		return c.HasExternalCluster()
	case &c.Ports.Admission:
		return !c.hasReachableWebhooks()
	case &c.Ports.OpenSearch, &c.Ports.OpenSearchSync:
		return !c.OpenSearch
	default:
		return false
	}
}

// requireSameCluster requires the cluster name with which the state was created. The stream holds objects under that name, and
// with another name their deletions would never be published.
func (c *Config) requireSameCluster(dir string) error {
	path := filepath.Join(dir, "cluster")
	made, err := os.ReadFile(path)
	if _, old := os.Stat(filepath.Join(dir, "nats")); errors.Is(err, os.ErrNotExist) && old == nil {
		made, err = []byte(Defaults().Cluster), nil // State older than this file has the default name.
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the name of the cluster: %w", err)
	case string(made) != c.Cluster:
		return fmt.Errorf("--cluster %q: the state in %s is of cluster %q; use that name, or another --state-dir", c.Cluster, dir, made)
	}
	if err := os.WriteFile(path, []byte(c.Cluster), 0o600); err != nil {
		return fmt.Errorf("store the name of the cluster: %w", err)
	}
	return nil
}

// checkFree returns an error if p cannot be opened. It listens on p for a moment.
func (p portSetting) checkFree() error {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(*p.number)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d for %s is taken by another program: stop that one, or choose another port with --%s",
			*p.number, p.of, p.flag)
	}
	if err != nil {
		return fmt.Errorf("port %d for %s (--%s): %w", *p.number, p.of, p.flag, err)
	}
	return listener.Close()
}

const loopback = "127.0.0.1"

// createStateDir creates the state directory and returns its absolute path. Only its owner may read it, because it holds the
// keys of the local API server.
func (c *Config) createStateDir() (string, error) {
	dir, err := filepath.Abs(c.StateDir)
	if err != nil {
		return "", fmt.Errorf("resolve --state-dir %q: %w", c.StateDir, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return "", fmt.Errorf("make --state-dir: %w", err)
	}
	return dir, nil
}
