package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestFlagsSetWhatIsConfigured(t *testing.T) {
	cfg := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if err := fs.Parse([]string{"--iam-store=access", "--unobserved-targets=trust", "--subject=uid-or-name", "--max-staleness=7s"}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil || cfg.Store != "access" || cfg.UnobservedTargets != trust || cfg.Subject != byUIDOrName || cfg.MaxStaleness != 7*time.Second {
		t.Errorf("set were %+v, %v", cfg, err)
	}
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	cfg := Defaults()
	cfg.Store, cfg.UnobservedTargets, cfg.Subject, cfg.MaxStaleness, cfg.NATS.URL = "No Store", "hope", "name", time.Second, ""
	err := Run(t.Context(), cfg)
	for _, flag := range []string{"--iam-store", "--unobserved-targets", "--subject", "--max-staleness", "--nats-url"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is refused with %v", flag, err)
		}
	}
}
