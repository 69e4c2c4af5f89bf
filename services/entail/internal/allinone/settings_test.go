package allinone

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// parseFlags returns the settings of a command line.
func parseFlags(t *testing.T, args ...string) Config {
	t.Helper()
	cfg := Defaults()
	cfg.Ports = Ports{}
	fs := pflag.NewFlagSet("up", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestServiceFlagsSetServiceSettings(t *testing.T) {
	cfg := parseFlags(t, "--set", "tuple-sync.allow-member-tuples-enabled=true", "--set=tuple-sync.workers=3", "--set=store-sync.resync=1m",
		"--set=store-sync.discover=a/v1,b/v1", "--set=implied-role.project-roles=r#s=t", "--set=store-sync.openfga-target=elsewhere:1",
		"--set=webhook.decide=openfga")
	s := cfg.Services
	if err := cfg.validateSettings(); err != nil {
		t.Fatal(err)
	}
	if !s.TupleSync.AllowMemberTuples || s.TupleSync.Workers != 3 || s.StoreSync.Resync != time.Minute || s.StoreSync.Workers == 3 {
		t.Errorf("settings are %+v", s)
	}
	if !slices.Equal(s.StoreSync.Discovery.Ordinary, []string{"a/v1", "b/v1"}) || s.ImpliedRole.ProjectRoles != "r#s=t" {
		t.Errorf("lists and signs of equality: %+v, %q", s.StoreSync.Discovery, s.ImpliedRole.ProjectRoles)
	}
	if s.StoreSync.OpenFGA.Target != "elsewhere:1" || s.TupleSync.OpenFGA.Target != "" || s.Webhook.Decide != "openfga" {
		t.Errorf("OpenFGA is at %q, and at %q", s.StoreSync.OpenFGA.Target, s.TupleSync.OpenFGA.Target)
	}
}

func TestValidateServicesRefusesInvalidSettingsBeforeStart(t *testing.T) {
	for args, want := range map[string]string{
		"--set=tuple-sync.resync=1ms":                 "settings of tuple-sync: --resync 1ms",
		"--set=watcher.kinds=none":                    "settings of watcher: --kinds",
		"--cluster=root:orgs":                         "small letters",
		"--set=store-sync.openfga-token-file=a/b/c/d": "",
	} {
		cfg := parseFlags(t, args)
		if err := cfg.validateSettings(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestStateDirRequiresSameClusterName(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		cluster string
		refused bool
	}{{"one", false}, {"two", true}, {"one", false}} {
		cfg := Config{Cluster: step.cluster}
		if err := cfg.requireSameCluster(dir); (err != nil) != step.refused || err != nil && !strings.Contains(err.Error(), `of cluster "one"`) {
			t.Errorf("%s: %v", step.cluster, err)
		}
	}
}
