package watcher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/watcher"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := watcher.Defaults().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesInvalidSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*watcher.Config)
		want string
	}{
		"a kind that nobody consumes": {func(c *watcher.Config) { c.Kinds = []string{"pods"} }, "choose from stores.core.platform-mesh.io"},
		"no publishers":               {func(c *watcher.Config) { c.Publishers = 0 }, "--publishers 0: use 1 to 1024"},
		"a short memory":              {func(c *watcher.Config) { c.TombstoneTTL = time.Minute }, "--tombstone-ttl 1m0s: use at least 1h0m0s"},
		"no lease":                    {func(c *watcher.Config) { c.LeaseName = "" }, "--lease-name must not be empty"},
		"no namespace":                {func(c *watcher.Config) { c.SecretNamespaces = []string{"a", "b/*"} }, `"b/*" is not a namespace`},
		"a namespace twice":           {func(c *watcher.Config) { c.SecretNamespaces = []string{"a", "a"} }, "a is listed twice"},
		"too many namespaces":         {func(c *watcher.Config) { c.SecretNamespaces = make([]string, 101) }, "101 are too many, use at most 100"},
		"two copies":                  {func(c *watcher.Config) { c.StreamReplicas = 2 }, "--stream-replicas 2: use 1, 3 or 5"},
		"a shared setting":            {func(c *watcher.Config) { c.Cluster = "A" }, `--cluster "A"`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := watcher.Defaults()
			tc.set(&cfg)
			if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want it to say %q", err, tc.want)
			}
		})
	}
}

func TestIdentityComesFromPod(t *testing.T) {
	t.Setenv("POD_NAME", "watcher-7")
	t.Setenv("POD_NAMESPACE", "entail-system")
	cfg := watcher.Defaults()
	flags := pflag.NewFlagSet("watcher", pflag.ContinueOnError)
	cfg.BindFlags(flags)
	if err := flags.Parse([]string{"--kinds=stores.core.platform-mesh.io", "--lease-name=other"}); err != nil {
		t.Fatal(err)
	}
	if cfg.Identity != "watcher-7" || cfg.LeaseNamespace != "entail-system" || cfg.LeaseName != "other" || len(cfg.Kinds) != 1 {
		t.Errorf("config is %+v", cfg)
	}
}
