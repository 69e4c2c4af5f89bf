package opensearchsync

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestConfigIsSetByFlags(t *testing.T) {
	cfg := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if err := fs.Parse([]string{"--secret-interval=1m", "--local-clusters", "--legacy-group", "--drift-interval=2m", "--workers=3"}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil || cfg.SecretInterval != time.Minute || cfg.DriftInterval != 2*time.Minute || !cfg.Local || !cfg.Legacy || cfg.Workers != 3 {
		t.Errorf("set were %+v, %v", cfg, err)
	}
}

func TestConfigValidateNamesInvalidSettings(t *testing.T) {
	cfg := Defaults()
	cfg.SecretInterval, cfg.DriftInterval, cfg.Workers = 0, 0, 0
	err := Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "--secret-interval") || !strings.Contains(err.Error(), "--drift-interval") || !strings.Contains(err.Error(), "--workers") {
		t.Errorf("refused with %v", err)
	}
}
