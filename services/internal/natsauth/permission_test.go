package natsauth_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/golden"
	"github.com/entail-dev/entail/services/internal/natsauth"
	"github.com/entail-dev/entail/services/internal/topology"
)

const shipped = "../../../deploy/base/nats/nats.conf"

func TestShippedConfigurationIsGenerated(t *testing.T) {
	want, err := natsauth.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckFile(t, shipped, want)
}

func TestEveryServiceIsUserWithReasonedRights(t *testing.T) {
	want := []string{natsauth.Admin, natsauth.System, topology.Watcher}
	for _, service := range slices.Concat(topology.DurableServices(), topology.ReaderServices()) {
		want = append(want, service.Name)
	}
	if got := natsauth.UserNames(); !slices.Equal(got, want) {
		t.Errorf("users are %v, want %v", got, want)
	}
	for _, user := range natsauth.Users() {
		for _, right := range slices.Concat(user.Publish, user.Deny) {
			if right.Why == "" || len(right.Subjects) == 0 {
				t.Errorf("%s has the right %+v", user.Service, right)
			}
		}
	}
}

func TestOnlyWatcherCanChangeStreams(t *testing.T) {
	for _, user := range natsauth.Users() {
		for _, right := range user.Publish {
			for _, subject := range right.Subjects {
				changes := strings.HasPrefix(subject, "$JS.API.STREAM.") && !strings.HasPrefix(subject, "$JS.API.STREAM.INFO.") ||
					strings.HasPrefix(subject, "entail.changes") || strings.HasPrefix(subject, "entail.barrier") || strings.HasPrefix(subject, "entail.sync")
				if changes && user.Service != topology.Watcher || subject == ">" || strings.HasPrefix(subject, "$JS.API.>") {
					t.Errorf("%s may publish on %s", user.Service, subject)
				}
			}
		}
	}
}

func TestServerRefusesUnknownNKey(t *testing.T) {
	public := map[string]string{}
	for _, user := range natsauth.UserNames() {
		public[user] = "U" + strings.Repeat("A", 55)
	}
	if config, err := natsauth.ServerConfigWithNKeys(public); err != nil || bytes.Contains(config, []byte("password: ")) {
		t.Errorf("%v: %s", err, config)
	}
	for _, wrong := range []string{"", "SUAA", "U" + strings.Repeat("a", 55), public[natsauth.Admin] + " }"} {
		public[topology.Watcher] = wrong
		if _, err := natsauth.ServerConfigWithNKeys(public); err == nil || !strings.Contains(err.Error(), "watcher") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
