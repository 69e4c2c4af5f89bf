package service

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/internal/rpc"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestEverySettingIsFlagAndVariable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		value string
		got   func(Config) any
		want  any
	}{
		"cluster":            {"east", func(c Config) any { return c.Cluster }, "east"},
		"nats-url":           {"tls://a:1,tls://b:2", func(c Config) any { return c.NATS.URL }, "tls://a:1,tls://b:2"},
		"nats-creds":         {file, func(c Config) any { return c.NATS.CredsFile }, file},
		"nats-nkey":          {file, func(c Config) any { return c.NATS.NKeyFile }, file},
		"nats-user":          {"me", func(c Config) any { return c.NATS.User }, "me"},
		"nats-password-file": {file, func(c Config) any { return c.NATS.PasswordFile }, file},
		"nats-token-file":    {file, func(c Config) any { return c.NATS.TokenFile }, file},
		"nats-ca":            {file, func(c Config) any { return c.NATS.CAFile }, file},
		"kubeconfig":         {file, func(c Config) any { return c.Kube.Kubeconfig }, file},
		"context":            {"kind", func(c Config) any { return c.Kube.Context }, "kind"},
		"listen":             {"127.0.0.1:1", func(c Config) any { return c.RPC.Listen }, "127.0.0.1:1"},
		"auth":               {"none", func(c Config) any { return c.RPC.Auth }, rpc.AuthNone},
		"tls-cert":           {file, func(c Config) any { return c.RPC.TLS.Certificate }, file},
		"tls-key":            {file, func(c Config) any { return c.RPC.TLS.Key }, file},
		"resync":             {"1m", func(c Config) any { return c.Resync }, time.Minute},
		"log-level":          {"debug", func(c Config) any { return c.LogLevel }, slog.LevelDebug},
	}
	flags := func() (*Config, *pflag.FlagSet) {
		c, fs := Defaults(), pflag.NewFlagSet("test", pflag.ContinueOnError)
		c.BindFlags(fs)
		return &c, fs
	}
	_, all := flags()
	all.VisitAll(func(f *pflag.Flag) {
		if _, ok := tests[f.Name]; !ok {
			t.Errorf("--%s is not tested", f.Name)
		}
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			byFlag, fs := flags()
			if err := fs.Parse([]string{"--" + name, test.value}); err != nil || test.got(*byFlag) != test.want {
				t.Errorf("flag gives %v, %v; want %v", test.got(*byFlag), err, test.want)
			}
			byVariable, fs := flags()
			if err := setFlagsFromEnv(fs, environment(map[string]string{flagVariable(name): test.value})); err != nil || test.got(*byVariable) != test.want {
				t.Errorf("variable gives %v, %v; want %v", test.got(*byVariable), err, test.want)
			}
		})
	}
}

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestValidateExplainsInvalidSettings(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string
	}{
		"no cluster":               {func(c *Config) { c.Cluster = "" }, "--cluster \"\": use 1 to 63"},
		"cluster is a wildcard":    {func(c *Config) { c.Cluster = "*" }, "--cluster"},
		"cluster is several words": {func(c *Config) { c.Cluster = "a.b" }, "--cluster"},
		"cluster is long":          {func(c *Config) { c.Cluster = strings.Repeat("a", 64) }, "--cluster"},
		"hot resync":               {func(c *Config) { c.Resync = time.Millisecond }, "--resync 1ms: use 1s to 24h0m0s"},
		"no NATS":                  {func(c *Config) { c.NATS.URL = "" }, "server 1: use the form nats://HOST:PORT"},
		"second NATS is not a URL": {func(c *Config) { c.NATS.URL = "nats://a:1,b" }, "server 2: use the form"},
		"NATS over HTTP":           {func(c *Config) { c.NATS.URL = "http://a:1" }, "use the form nats://"},
		"many NATS":                {func(c *Config) { c.NATS.URL = strings.Repeat("nats://a:1,", 20) + "nats://a:1" }, "names 21 servers"},
		"two kinds of credentials": {func(c *Config) { c.NATS.CredsFile, c.NATS.TokenFile = "a", "b" }, "use one of --nats-creds"},
		"user without password":    {func(c *Config) { c.NATS.User = "me" }, "--nats-user and --nats-password-file"},
		"password without user":    {func(c *Config) { c.NATS.PasswordFile = "/nowhere" }, "--nats-user and --nats-password-file"},
		"no such file":             {func(c *Config) { c.NATS.CAFile = "/nowhere/ca.crt" }, "--nats-ca: open /nowhere/ca.crt"},
		"no such kubeconfig":       {func(c *Config) { c.Kube.Kubeconfig = "/nowhere/config" }, "--kubeconfig: open /nowhere/config"},
		"listen on a word":         {func(c *Config) { c.RPC.Listen = "8080" }, "--listen \"8080\": use HOST:PORT"},
		"unknown authentication":   {func(c *Config) { c.RPC.Auth = "basic" }, `--auth: authentication "basic" is unknown`},
		"certificate without key":  {func(c *Config) { c.RPC.TLS.Certificate = "/nowhere" }, "--tls-cert and --tls-key belong together"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := Defaults()
			test.change(&cfg)
			if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestValidateReportsAllErrors(t *testing.T) {
	cfg := Defaults()
	cfg.Cluster, cfg.Resync, cfg.RPC.Listen = "A", -1, "nowhere"
	for _, flag := range []string{"--cluster", "--resync", "--listen"} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%v does not name %s", err, flag)
		}
	}
}

func TestURLCredentialsAreRedacted(t *testing.T) {
	cfg := Defaults()
	for _, url := range []string{
		"nats://me:hunter2@a:1", "nats://hunter2@a:1", "nats://a:1, nats://me:hunter2@b:2", "nats://me:hunter2@a:port", "http://hunter2@a:1", "nats://hunter2@",
	} {
		cfg.NATS.URL = url
		var printed strings.Builder
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("starting", "config", cfg)
		if err := cfg.Validate(); strings.Contains(printed.String(), "hunter2") || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s is printed as %s, refused with %v", url, printed.String(), err)
		}
		if !strings.Contains(printed.String(), `"cluster":"local"`) {
			t.Errorf("printed %s", printed.String())
		}
	}
}
