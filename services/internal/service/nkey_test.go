package service

import (
	"os"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

func TestNKeyFileIsRereadAtConnect(t *testing.T) {
	first, one := newNKey(t)
	second, two := newNKey(t)
	file := writeFile(t, first)
	var options *natsserver.Options
	bus := startNATS(t, -1, func(o *natsserver.Options) {
		o.Nkeys = []*natsserver.NkeyUser{{Nkey: one}}
		options = o
	})
	cfg := Defaults()
	cfg.NATS.URL, cfg.NATS.NKeyFile = bus.ClientURL(), file
	tr := runServiceWith(t, cfg, nothing)
	tr.mustBecomeReady(t)
	replaced := options.Clone()
	replaced.Nkeys = []*natsserver.NkeyUser{{Nkey: two}}
	if err := bus.ReloadOptions(replaced); err != nil {
		t.Fatal(err)
	}
	eventually(t, tr.readyzIs("nats: not connected"))
	if err := os.WriteFile(file, []byte(second), 0o600); err != nil {
		t.Fatal(err)
	}
	tr.mustBecomeReady(t)
	if log := tr.log.String(); strings.Contains(log, first) || strings.Contains(log, second) {
		t.Errorf("log holds a seed: %s", log)
	}
}
