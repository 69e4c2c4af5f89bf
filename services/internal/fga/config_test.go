package fga

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestConfigValidateNamesInvalidField(t *testing.T) {
	cases := map[string]struct {
		cfg  Config
		want string
	}{
		"good":                    {cfg: Config{Target: "openfga:8081"}},
		"no target":               {want: "--openfga-target"},
		"no port":                 {cfg: Config{Target: "openfga"}, want: "--openfga-target"},
		"plaintext and authority": {cfg: Config{Target: "a:1", Plaintext: true, CAFile: "x"}, want: "--openfga-plaintext"},
		"two tokens":              {cfg: Config{Target: "a:1", PresharedKey: "x", PresharedKeyFile: "y"}, want: "--openfga-token-file"},
		"every address of a name": {cfg: Config{Target: "dns:///openfga:8081"}},
		"by a server of names":    {cfg: Config{Target: "dns://10.0.0.53/openfga:8081"}},
		"a name without port":     {cfg: Config{Target: "dns:///openfga"}, want: "--openfga-target"},
		"a hosted server":         {cfg: Config{Target: "https://api.fga.example/eu", CAFile: "x"}},
		"another scheme":          {cfg: Config{Target: "grpc://openfga:8081"}, want: "dns:///host:port or https://host"},
		"a URL without host":      {cfg: Config{Target: "https:///x"}, want: "use https://HOST"},
		"a URL with a password":   {cfg: Config{Target: "https://a:b@openfga"}, want: "credentials have their own flags"},
		"a URL that is none":      {cfg: Config{Target: "https://open fga"}, want: "use https://HOST"},
		"a URL with a query":      {cfg: Config{Target: "https://openfga?a=b"}, want: "use https://HOST"},
		"http, loopback":          {cfg: Config{Target: "http://[::1]:8080"}},
		"http elsewhere":          {cfg: Config{Target: "http://openfga:8080"}, want: "--openfga-plaintext"},
		"http, asked for":         {cfg: Config{Target: "http://openfga:8080", Plaintext: true}},
		"https in plaintext":      {cfg: Config{Target: "https://openfga", Plaintext: true}, want: "--openfga-plaintext"},
		"http with authority":     {cfg: Config{Target: "http://localhost", CAFile: "x"}, want: "--openfga-ca-file"},
		"a client":                {cfg: Config{Target: "a:1", ClientID: "x", ClientSecretFile: "y", TokenURL: "https://issuer/token"}},
		"a client without secret": {cfg: Config{Target: "a:1", ClientID: "x", TokenURL: "https://issuer"}, want: "--openfga-client-secret-file"},
		"a secret of nobody":      {cfg: Config{Target: "a:1", ClientSecretFile: "x"}, want: "--openfga-client-id"},
		"scopes of nobody":        {cfg: Config{Target: "a:1", Scopes: []string{"x"}}, want: "--openfga-client-id"},
		"a client and a token": {
			cfg: Config{Target: "a:1", PresharedKey: "t", ClientID: "x", ClientSecretFile: "y", TokenURL: "https://issuer"}, want: "preshared key",
		},
		"a secret in plaintext": {
			cfg: Config{Target: "a:1", ClientID: "x", ClientSecretFile: "y", TokenURL: "http://issuer"}, want: "--openfga-token-url",
		},
		"negative timeout": {cfg: Config{Target: "a:1", Timeout: -1}, want: "--openfga-timeout"},
		"too many tuples":  {cfg: Config{Target: "a:1", MaxTuples: 1_000_000}, want: "--openfga-max-tuples"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.cfg.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want %q", err, tc.want)
			}
		})
	}
}

func TestConfigAllowsPlaintextOnLoopbackOnly(t *testing.T) {
	cases := map[string]struct {
		cfg  Config
		want bool
	}{
		"loopback address":    {cfg: Config{Target: "127.0.0.1:8081"}, want: true},
		"loopback, version 6": {cfg: Config{Target: "[::1]:8081"}, want: true},
		"localhost":           {cfg: Config{Target: "localhost:8081"}, want: true},
		"loopback with CA":    {cfg: Config{Target: "localhost:8081", CAFile: "ca.pem"}},
		"another host":        {cfg: Config{Target: "openfga:8081"}},
		"another, asked for":  {cfg: Config{Target: "openfga:8081", Plaintext: true}, want: true},
		"loopback by name":    {cfg: Config{Target: "dns:///localhost:8081"}, want: true},
		"another by name":     {cfg: Config{Target: "dns:///openfga:8081"}},
		"HTTP":                {cfg: Config{Target: "http://127.0.0.1:8080"}, want: true},
		"HTTPS":               {cfg: Config{Target: "https://127.0.0.1:8080"}},
	}
	for name, tc := range cases {
		if got := tc.cfg.isPlaintext(); got != tc.want {
			t.Errorf("%s: plaintext is %v; want %v", name, got, tc.want)
		}
	}
}

func TestConfigChecksFiles(t *testing.T) {
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := map[string]Config{
		"no such authority":   {CAFile: "/nonexistent"},
		"no certificate":      {CAFile: write("no certificate")},
		"no such token":       {PresharedKeyFile: "/nonexistent"},
		"empty token":         {PresharedKeyFile: write(" \n")},
		"two lines of token":  {PresharedKeyFile: write("one\ntwo")},
		"token without bound": {PresharedKeyFile: write(strings.Repeat("x", maxTokenBytes+1))},
		"no such secret":      {ClientID: "x", TokenURL: "https://issuer", ClientSecretFile: "/nonexistent"},
	}
	for name, cfg := range cases {
		for _, cfg.Target = range []string{"openfga:8081", "https://openfga"} {
			client, err := Dial(cfg)
			if err == nil {
				_ = client.Close()
				t.Errorf("%s: no error", name)
			}
		}
	}
}

func TestCredentialIsRedacted(t *testing.T) {
	const secret = "0penSesame"
	cfg := Config{Target: "a:1", PresharedKey: secret}
	encoded, err := json.Marshal(struct{ Token Credential }{cfg.PresharedKey})
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	log.Info("configuration", "token", cfg.PresharedKey, "config", cfg)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("configuration", "token", cfg.PresharedKey)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var bound Config
	bound.BindFlags(flags)
	if err := flags.Parse([]string{"--openfga-token", secret}); err != nil {
		t.Fatal(err)
	}
	if bound.PresharedKey != secret {
		t.Error("the flag does not set the token")
	}
	for _, text := range []string{
		fmt.Sprint(cfg), fmt.Sprintf("%+v %#v %q %s", cfg, cfg, cfg.PresharedKey, cfg.PresharedKey), string(encoded), logged.String(),
		flags.FlagUsages(), flags.Lookup("openfga-token").Value.String(),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("the token is in %q", text)
		}
	}
	if (bearerCredentials{}).RequireTransportSecurity() != true {
		t.Error("the token goes over an insecure transport")
	}
}
