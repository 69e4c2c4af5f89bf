package allinone

import (
	"net"
	"strings"
	"testing"
)

// portInUse returns a port on which another listener is open.
func portInUse(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}

func TestValidateSettingsNamesFlagOfUnusablePort(t *testing.T) {
	tests := map[string]struct {
		set  func(*Config)
		want []string
	}{
		"free ports":           {set: func(*Config) {}},
		"a port that is taken": {set: func(c *Config) { c.Ports.NATS = portInUse(t) }, want: []string{"NATS", "taken", "--nats-port"}},
		"two that are taken": {set: func(c *Config) {
			c.Ports.NATS, c.Ports.Watcher = portInUse(t), portInUse(t)
		}, want: []string{"--nats-port", "--watcher-port"}},
		"a port that is no port":   {set: func(c *Config) { c.Ports.OpenFGA = 70000 }, want: []string{"--openfga-port 70000", "1 to 65535"}},
		"the same port twice":      {set: func(c *Config) { c.Ports.OpenFGA, c.Ports.NATS = 1, 1 }, want: []string{"--nats-port", "--openfga-port"}},
		"OpenSearch's, without it": {set: func(c *Config) { c.Ports.OpenSearch = portInUse(t) }},
		"OpenSearch's":             {set: func(c *Config) { c.Ports.OpenSearch, c.OpenSearch = portInUse(t), true }, want: []string{"OpenSearch", "--opensearch-port"}},
		"OpenSearch with a cluster of the user's": {
			set: func(c *Config) { c.OpenSearch, c.UseCluster = true, true }, want: []string{"--opensearch works with the local API server"},
		},
		"the API server's, with a cluster of the user's": {set: func(c *Config) {
			c.Ports.Kube, c.UseCluster = portInUse(t), true
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := Defaults()
			cfg.Ports = Ports{}
			test.set(&cfg)
			err := cfg.validateSettings()
			if (err != nil) != (test.want != nil) {
				t.Fatalf("error is %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestDefaultPortsAreDistinct(t *testing.T) {
	cfg := Defaults()
	seen := map[int]string{}
	for _, p := range cfg.Ports.allPorts() {
		if other, twice := seen[*p.number]; twice || *p.number == 0 {
			t.Errorf("--%s and --%s are both %d", other, p.flag, *p.number)
		}
		seen[*p.number] = p.flag
	}
}
