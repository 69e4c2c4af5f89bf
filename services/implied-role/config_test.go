package impliedrole_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
)

func TestConfigIsSetByFlags(t *testing.T) {
	cfg := impliedrole.Defaults()
	flags := pflag.NewFlagSet("implied-role", pflag.ContinueOnError)
	cfg.BindFlags(flags)
	if err := flags.Parse([]string{"--prohibited=ops-*,Role/root", "--exclude-namespaces=vault", "--max-generated=7", "--max-rules=8", "--writers=9", "--cluster=east", "--project-store=demo", "--openfga-target=here:1"}); err != nil {
		t.Fatal(err)
	}
	p := cfg.Policy
	if strings.Join(p.Prohibited, " ") != "ops-* Role/root" || strings.Join(p.Excluded, " ") != "vault" ||
		p.MaxGenerated != 7 || p.MaxRules != 8 || cfg.Writers != 9 || cfg.ProjectStore != "demo" || cfg.OpenFGA.Target != "here:1" || cfg.Cluster != "east" {
		t.Errorf("got %+v", cfg)
	}
}

func TestConfigValidateRefusesInvalidSettings(t *testing.T) {
	valid := impliedrole.Defaults()
	if err := valid.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for want, change := range map[string]func(*impliedrole.Config){
		"--max-generated 0": func(c *impliedrole.Config) { c.Policy.MaxGenerated = 0 },
		"--max-rules -1":    func(c *impliedrole.Config) { c.Policy.MaxRules = -1 },
		"--writers 0":       func(c *impliedrole.Config) { c.Writers = 0 },
		"--writers 2000":    func(c *impliedrole.Config) { c.Writers = 2000 },
		"--project-roles \"role\"": func(c *impliedrole.Config) {
			c.ProjectStore, c.ProjectRoles, c.OpenFGA.Target, c.OpenFGA.Timeout, c.OpenFGA.MaxTuples = "demo", "role", "127.0.0.1:8081", 1, 1
		},
		"--openfga-target": func(c *impliedrole.Config) { c.ProjectStore, c.OpenFGA.Target = "demo", "nowhere" },
		"--cluster":        func(c *impliedrole.Config) { c.Cluster = "" },
	} {
		cfg := impliedrole.Defaults()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
