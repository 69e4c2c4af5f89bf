package credential

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/entail-dev/entail/services/internal/natsauth"
	"github.com/entail-dev/entail/services/internal/topology"
)

// now returns the creation time of most certificates in these tests. It is recent, because the tests use them.
func now() time.Time { return time.Now().Truncate(time.Hour) }

// all returns the options that include every part.
func all() Options { return Options{OpenSearch: true} }

func allOptions(t *testing.T, keeper Keeper, at time.Time) []string {
	t.Helper()
	changed, err := CreateMissing(t.Context(), keeper, at, all())
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestCreateMissingKeepsExistingCredentials(t *testing.T) {
	dir := DirKeeper(t.TempDir())
	made := allOptions(t, dir, now())
	if want := slices.Sorted(slices.Values(EntryNames())); !slices.Equal(made, want) {
		t.Errorf("made %q, want %q", made, want)
	}
	if again := allOptions(t, dir, now().Add(24*time.Hour)); len(again) != 0 {
		t.Errorf("changed %q a day later", again)
	}
	// A lost seed is replaced, and the server receives the new public key.
	lost := filepath.Join(string(dir), "nats-tuple-sync")
	if err := os.RemoveAll(lost); err != nil {
		t.Fatal(err)
	}
	if again := allOptions(t, dir, now()); !slices.Equal(again, []string{"nats-server", "nats-tuple-sync"}) {
		t.Errorf("changed %q", again)
	}
}

func TestCreateMissingSkipsOpenSearchUnlessSelected(t *testing.T) {
	made, err := CreateMissing(t.Context(), DirKeeper(t.TempDir()), now(), Options{})
	if err != nil || len(made) != len(EntryNames())-2 || slices.ContainsFunc(made, func(name string) bool { return strings.HasPrefix(name, "opensearch-") }) {
		t.Errorf("made %q, %v", made, err)
	}
}

func TestDirKeeperFilesAreReadableByOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	allOptions(t, DirKeeper(dir), now())
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		others := os.FileMode(0o077)
		if strings.Contains(path, openSearchServer) {
			others = 0o027
		}
		if err == nil && info.Mode().Perm()&others != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCertificatesAreRenewedOneYearBeforeExpiryBySameAuthority(t *testing.T) {
	dir := DirKeeper(t.TempDir())
	allOptions(t, dir, now())
	if again := allOptions(t, dir, now().Add(serverLife-renewal-time.Hour)); len(again) != 0 {
		t.Errorf("changed %q too early", again)
	}
	want := slices.Sorted(maps.Keys(all().serverHosts()))
	if again := allOptions(t, dir, now().Add(serverLife-renewal+time.Hour)); !slices.Equal(again, want) {
		t.Errorf("changed %q, want %q", again, want)
	}
}

func TestCreateMissingReportsDamagedFiles(t *testing.T) {
	for _, file := range []string{"ca/ca.key", "ca/ca.crt", "nats-watcher/seed"} {
		dir := t.TempDir()
		allOptions(t, DirKeeper(dir), now())
		if err := os.WriteFile(filepath.Join(dir, file), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := CreateMissing(t.Context(), DirKeeper(dir), now(), all())
		if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), filepath.Dir(file)) {
			t.Errorf("%s: %v", file, err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(text) != "damaged" {
			t.Errorf("%s is now %q, %v", file, text, err)
		}
	}
}

func TestEntriesHoldOnlyRequiredSecrets(t *testing.T) {
	set, err := Set{}.buildRequiredSet(now(), all())
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range set {
		for file, data := range files {
			for owner, secret := range map[string][]byte{
				"nats-admin": set["nats-admin"][seedFile], "nats-watcher": set["nats-watcher"][seedFile],
				"ca": set["ca"]["ca.key"], "openfga-client openfga-server": set["openfga-client"][tokenFile], "postgres openfga-server": set["postgres"][passwordFile],
			} {
				if bytes.Contains(data, bytes.TrimSpace(secret)) && !strings.Contains(owner, name) {
					t.Errorf("%s/%s has a secret of %s", name, file, owner)
				}
			}
		}
	}
}

// runNATSWithCredentials runs NATS with the created credentials, as a cluster would.
func runNATSWithCredentials(t *testing.T, dir string) *server.Server {
	t.Helper()
	files := filepath.Join(dir, "nats-server")
	config := filepath.Join(files, "server.conf")
	text := "tls {cert_file: " + files + "/tls.crt, key_file: " + files + "/tls.key}\ninclude users.conf\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port, options.StoreDir, options.JetStream, options.NoSigs = "127.0.0.1", -1, t.TempDir(), true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	return s
}

func TestNATSUsersAuthenticateWithKeyAndHaveOnlyTheirRights(t *testing.T) {
	dir := t.TempDir()
	allOptions(t, DirKeeper(dir), now())
	s := runNATSWithCredentials(t, dir)
	for _, user := range natsauth.UserNames() {
		folder := filepath.Join(dir, "nats-"+user)
		key, err := nats.NkeyOptionFromSeed(filepath.Join(folder, seedFile))
		if err != nil {
			t.Fatal(err)
		}
		refused := make(chan error, 1)
		conn, err := nats.Connect(s.ClientURL(), key, nats.RootCAs(filepath.Join(folder, authorityFile)), nats.CustomInboxPrefix(topology.InboxPrefix(user)),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		if err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		if user != natsauth.Admin && user != natsauth.System && user != topology.Watcher {
			if err := conn.Publish("entail.changes.local.x.y._.z", nil); err != nil {
				t.Error(err)
			}
			select {
			case <-refused:
			case <-time.After(time.Minute):
				t.Errorf("%s may publish a change", user)
			}
		}
		conn.Close()
	}
	if _, err := nats.Connect(s.ClientURL(), nats.RootCAs(filepath.Join(dir, "ca", authorityFile))); err == nil {
		t.Error("who has no key comes in")
	}
}

func TestServerCertificatesAreValidForTheirNamesOnly(t *testing.T) {
	set, err := Set{}.buildRequiredSet(now(), all())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(set["openfga-client"][authorityFile])
	for name, hosts := range all().serverHosts() {
		pair, err := tls.X509KeyPair(set[name][certificateFile], set[name][keyFile])
		if err != nil {
			t.Fatal(err)
		}
		called := map[string]bool{"localhost": true, "127.0.0.1": true, "example.org": false, "watcher": false}
		for _, host := range hosts {
			called[strings.ReplaceAll(host, "*", "x")], called[host+".entail-system.svc"] = true, true
		}
		for host, good := range called {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); (err == nil) != good {
				t.Errorf("%s as %s: %v", name, host, err)
			}
		}
	}
}
