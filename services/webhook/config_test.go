package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/webhook/internal/review"
)

func TestConfigIsSetByFlags(t *testing.T) {
	cfg := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if err := fs.Parse([]string{"--iam-store=access", "--unobserved-targets=trust", "--subject=uid-or-name", "--max-staleness=7s"}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil || cfg.Store != "access" || cfg.UnobservedTargets != trust || cfg.Subject != review.ByUIDOrName || cfg.MaxStaleness != 7*time.Second {
		t.Errorf("got configuration %+v, %v", cfg, err)
	}
}

func TestConfigValidateNamesInvalidSettings(t *testing.T) {
	cfg := Defaults()
	cfg.Store, cfg.UnobservedTargets, cfg.Subject, cfg.MaxStaleness, cfg.NATS.URL = "No Store", "hope", "name", time.Second, ""
	err := Run(t.Context(), cfg)
	for _, flag := range []string{"--iam-store", "--unobserved-targets", "--subject", "--max-staleness", "--nats-url"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: got error %v", flag, err)
		}
	}
}

func TestConfigValidateDecision(t *testing.T) {
	for name, c := range map[string]struct {
		decide string
		verify float64
		target string
		flag   string
	}{
		"nobody is asked":             {byIndex, 0, "", ""},
		"OpenFGA decides":             {byOpenFGA, 0, "127.0.0.1:1", ""},
		"OpenFGA is asked, too":       {byIndex, 1, "127.0.0.1:1", ""},
		"somebody else":               {"me", 0, "", "--decide"},
		"less than nothing":           {byIndex, -0.1, "127.0.0.1:1", "--verify"},
		"more than all":               {byIndex, 1.1, "127.0.0.1:1", "--verify"},
		"OpenFGA by itself":           {byOpenFGA, 0.5, "127.0.0.1:1", "--verify"},
		"no OpenFGA to ask":           {byOpenFGA, 0, "", "--openfga-target"},
		"no OpenFGA to be asked, too": {byIndex, 0.5, "", "--openfga-target"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Defaults()
			cfg.Decide, cfg.Verify, cfg.OpenFGA.Target = c.decide, c.verify, c.target
			if err := cfg.validateDecision(); (err == nil) != (c.flag == "") || err != nil && !strings.Contains(err.Error(), c.flag) {
				t.Errorf("got %v", err)
			}
		})
	}
}
