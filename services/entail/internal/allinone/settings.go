package allinone

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/topology"
	opensearchsync "github.com/entail-dev/entail/services/opensearch-sync"
	storesync "github.com/entail-dev/entail/services/store-sync"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
	"github.com/entail-dev/entail/services/watcher"
	"github.com/entail-dev/entail/services/webhook"
)

// ServicesConfig holds the settings of each service. [Run] overrides cluster, servers, addresses and logs. It keeps a
// target of OpenFGA; an empty one means the embedded OpenFGA.
type ServicesConfig struct {
	Watcher        watcher.Config
	StoreSync      storesync.Config
	TupleSync      tuplesync.Config
	ImpliedRole    impliedrole.Config
	Webhook        webhook.Config
	OpenSearchSync opensearchsync.Config
}

// namedServiceConfig is a service with its settings. openFGA is nil for a service that does not use OpenFGA.
type namedServiceConfig struct {
	name     string
	settings interface {
		BindFlags(fs *pflag.FlagSet)
		Validate() error
	}
	common  *service.Config
	openFGA *fga.Config
}

func (s *ServicesConfig) namedServices() []namedServiceConfig {
	return []namedServiceConfig{
		{topology.Watcher, &s.Watcher, &s.Watcher.Config, nil},
		{topology.StoreSync, &s.StoreSync, &s.StoreSync.Config.Config, &s.StoreSync.OpenFGA},
		{topology.TupleSync, &s.TupleSync, &s.TupleSync.Config.Config, &s.TupleSync.OpenFGA},
		{topology.ImpliedRole, &s.ImpliedRole, &s.ImpliedRole.Config.Config, &s.ImpliedRole.OpenFGA},
		{topology.Webhook, &s.Webhook, &s.Webhook.Config, &s.Webhook.OpenFGA},
		{topology.OpensearchSync, &s.OpenSearchSync, &s.OpenSearchSync.Config.Config, nil},
	}
}

// validateServices returns the errors with which services would refuse to start.
func (s ServicesConfig) validateServices(cluster string) error {
	var errs []error
	for _, t := range s.namedServices() {
		t.common.Cluster = cluster
		if t.openFGA != nil {
			t.openFGA.Target = cmp.Or(t.openFGA.Target, loopback+":1")
		}
		if err := t.settings.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("settings of %s: %w", t.name, err))
		}
	}
	return errors.Join(errs...)
}

// serviceFlags is the value of --set, which sets one flag of one service at a time.
type serviceFlags []*pflag.FlagSet

func (s *ServicesConfig) newServiceFlags() serviceFlags {
	var all serviceFlags
	for _, t := range s.namedServices() {
		fs := pflag.NewFlagSet(t.name, pflag.ContinueOnError)
		t.settings.BindFlags(fs)
		if t.openFGA != nil {
			t.openFGA.Target = ""
		}
		all = append(all, fs)
	}
	return all
}

// Set applies SERVICE.FLAG=VALUE. Its error lists the valid services or flags.
func (a serviceFlags) Set(assignment string) error {
	place, value, complete := strings.Cut(assignment, "=")
	name, flag, _ := strings.Cut(place, ".")
	i := slices.IndexFunc(a, func(fs *pflag.FlagSet) bool { return fs.Name() == name })
	switch {
	case i < 0:
		return fmt.Errorf("there is no service %.100q: use SERVICE.FLAG=VALUE with one of %s", name, strings.Join(a.serviceNames(), ", "))
	case isSetByUp(flag):
		return fmt.Errorf("`entail up` sets --%.100s of services itself: see `entail up --help`", flag)
	case a[i].Lookup(flag) == nil:
		return fmt.Errorf("%s has no flag %.100q: use one of %s", name, flag, strings.Join(settableFlags(a[i]), ", "))
	case !complete:
		return fmt.Errorf("%s lacks a value: use %s=VALUE", place, place)
	}
	if err := a[i].Set(flag, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// String returns an empty text: the settings hold the values.
func (a serviceFlags) String() string { return "" }

// Type returns the placeholder of the value in the help.
func (a serviceFlags) Type() string { return "SERVICE.FLAG=VALUE" }

func (a serviceFlags) serviceNames() []string {
	names := make([]string, len(a))
	for i, fs := range a {
		names[i] = fs.Name()
	}
	return names
}

func settableFlags(fs *pflag.FlagSet) []string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !isSetByUp(f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}

// isSetByUp reports whether `entail up` sets the flag itself: cluster, servers, addresses, admission, leases and logs.
func isSetByUp(flag string) bool {
	about := func(prefix string) bool { return strings.HasPrefix(flag, prefix) }
	return slices.ContainsFunc([]string{"nats-", "tls-", "admission-", "authorizer-", "lease-"}, about) ||
		slices.Contains([]string{"cluster", "kubeconfig", "context", "listen", "auth", "identity", "log-level"}, flag)
}
