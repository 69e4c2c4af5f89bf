// Package credential creates the credentials by which the parts of an installation authenticate each other: an
// authority, certificates, nkeys, keys and passwords. It creates missing ones and keeps existing ones, so it can run at
// every start. It rewrites files that derive from others, such as the users of NATS.
//
// The parts trust no other authority. No credential is in a manifest, an image or a variable: a [Keeper] holds them, in
// a directory or in Secrets.
package credential

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/entail-dev/entail/services/internal/natsauth"
)

// Set holds files by the name of the entry that they belong to, then by file name.
type Set map[string]map[string][]byte

// Names of files.
const (
	authorityFile   = "ca.crt"
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	seedFile        = "seed"
	tokenFile       = "token"
	passwordFile    = "password"
)

// Keeper stores a set.
type Keeper interface {
	// Load returns the stored files.
	Load(ctx context.Context) (Set, error)
	// Save stores the files of one name. It is called only if they changed.
	Save(ctx context.Context, name string, files map[string][]byte) error
}

// Options selects credentials beyond those that every installation has.
type Options struct {
	// OpenSearch adds certificates for an OpenSearch server and its administrator.
	OpenSearch bool
}

// CreateMissing stores all required credentials, and returns the names of those that it created or changed.
func CreateMissing(ctx context.Context, keeper Keeper, now time.Time, o Options) ([]string, error) {
	have, err := keeper.Load(ctx)
	if err != nil {
		return nil, err
	}
	want, err := have.buildRequiredSet(now, o)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if maps.EqualFunc(have[name], want[name], bytes.Equal) {
			continue
		}
		if err := keeper.Save(ctx, name, want[name]); err != nil {
			return changed, err
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// buildRequiredSet returns the required credentials. It keeps the existing ones where it can.
func (s Set) buildRequiredSet(now time.Time, o Options) (Set, error) {
	authority, err := loadOrCreateAuthority(s["ca"], now)
	if err != nil {
		return nil, err
	}
	want := Set{"ca": authority.authorityFiles()}
	for name, hosts := range o.serverHosts() {
		if want[name], err = authority.keepOrIssueCertificate(s[name], name, hosts); err != nil {
			return nil, err
		}
		want[name][authorityFile] = authority.certificate
	}
	if err := s.addNATSUsers(want, authority); err != nil {
		return nil, err
	}
	token, password := s.existingOrRandomFile("openfga-client", tokenFile), s.existingOrRandomFile("postgres", passwordFile)
	want["openfga-client"] = map[string][]byte{tokenFile: token, authorityFile: authority.certificate}
	want["openfga-server"]["config.yaml"] = renderOpenFGAConfig(token, password)
	want["postgres"][passwordFile] = password
	return want, nil
}

// openSearchServer is the entry whose files are readable by their group. The OpenSearch image runs as another user.
const openSearchServer = "opensearch-server"

// serverHosts returns the entries that need a certificate, each with its host names. The administrator of OpenSearch has no
// host name and uses its certificate only as a client.
func (o Options) serverHosts() map[string][]string {
	servers := map[string][]string{
		"nats-server":    {"nats", "*.nats-peers"},
		"openfga-server": {"openfga"},
		"postgres":       {"postgres"},
	}
	if o.OpenSearch {
		servers[openSearchServer], servers["opensearch-client"] = []string{"opensearch"}, nil
	}
	return servers
}

// addNATSUsers adds a seed for every user of NATS, and their public keys for the server.
func (s Set) addNATSUsers(want Set, authority *certificateAuthority) error {
	public := map[string]string{}
	for _, user := range natsauth.UserNames() {
		name := "nats-" + user
		seed := s[name][seedFile]
		pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
		if len(seed) == 0 {
			pair, err = nkeys.CreateUser()
		}
		if err != nil {
			return fmt.Errorf("the seed of %s is damaged: remove it, and a new one is created: %w", name, err)
		}
		if seed, err = pair.Seed(); err != nil {
			return fmt.Errorf("creating the seed of %s: %w", name, err)
		}
		if public[user], err = pair.PublicKey(); err != nil {
			return fmt.Errorf("creating the seed of %s: %w", name, err)
		}
		want[name] = map[string][]byte{seedFile: seed, authorityFile: authority.certificate}
	}
	users, err := natsauth.ServerConfigWithNKeys(public)
	want["nats-server"]["users.conf"] = users
	return err
}

// existingOrRandomFile returns the existing file, or a new random text.
func (s Set) existingOrRandomFile(name, file string) []byte {
	if there := s[name][file]; len(there) > 0 {
		return there
	}
	return []byte(rand.Text())
}

// renderOpenFGAConfig returns the settings that must not be in a variable. The server and the migration of OpenFGA use
// different names for the same setting.
func renderOpenFGAConfig(token, password []byte) []byte {
	return fmt.Appendf(nil, `authn:
  method: preshared
  preshared:
    keys: [%q]
datastore:
  username: openfga
  password: %q
datastore-username: openfga
datastore-password: %q
`, token, password, password)
}
