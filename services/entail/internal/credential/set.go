// Package credential makes what the parts of an installation know each other by: an authority and
// certificates, nkeys, keys, passwords. It makes what is missing and keeps what is there, so that it can
// be run at every start; what follows from others, such as the users of NATS, is written anew.
//
// The parts trust nobody else. Nothing of it is in a manifest, an image or a variable: a [Keeper] holds it,
// a directory or the Secrets of a namespace.
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

	"github.com/entail-dev/entail/services/internal/permission"
)

// Set is files by the name of who has them together, and their own.
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

// Keeper holds a set.
type Keeper interface {
	// Load is what there is.
	Load(ctx context.Context) (Set, error)
	// Save keeps the files of one name, which have changed.
	Save(ctx context.Context, name string, files map[string][]byte) error
}

// Options say what there is to be beside what every installation has.
type Options struct {
	// OpenSearch is a server of it, with an administrator.
	OpenSearch bool
}

// Complete has the keeper hold all that is needed, and returns the names of what was made or changed.
func Complete(ctx context.Context, keeper Keeper, now time.Time, o Options) ([]string, error) {
	have, err := keeper.Load(ctx)
	if err != nil {
		return nil, err
	}
	want, err := have.completed(now, o)
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

// completed is what there must be, as far as possible what there is.
func (s Set) completed(now time.Time, o Options) (Set, error) {
	authority, err := loadAuthority(s["ca"], now)
	if err != nil {
		return nil, err
	}
	want := Set{"ca": authority.files()}
	for name, hosts := range o.servers() {
		if want[name], err = authority.server(s[name], name, hosts); err != nil {
			return nil, err
		}
		want[name][authorityFile] = authority.certificate
	}
	if err := s.addUsers(want, authority); err != nil {
		return nil, err
	}
	token, password := s.secret("openfga-client", tokenFile), s.secret("postgres", passwordFile)
	want["openfga-client"] = map[string][]byte{tokenFile: token, authorityFile: authority.certificate}
	want["openfga-server"]["config.yaml"] = openFGAConfig(token, password)
	want["postgres"][passwordFile] = password
	return want, nil
}

// openSearchServer is whose files its user reads by their group: in its image that is another user than ours.
const openSearchServer = "opensearch-server"

// servers are who needs a certificate, and under which names others call them. The administrator of OpenSearch, whom nobody
// calls, proves to be that by one.
func (o Options) servers() map[string][]string {
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

// addUsers gives everybody on the bus a seed, and the server their public halves.
func (s Set) addUsers(want Set, authority *authority) error {
	public := map[string]string{}
	for _, user := range permission.Names() {
		name := "nats-" + user
		seed := s[name][seedFile]
		pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
		if len(seed) == 0 {
			pair, err = nkeys.CreateUser()
		}
		if err != nil {
			return fmt.Errorf("the seed of %s is damaged: remove it, and another is made: %w", name, err)
		}
		if seed, err = pair.Seed(); err != nil {
			return fmt.Errorf("making the seed of %s: %w", name, err)
		}
		if public[user], err = pair.PublicKey(); err != nil {
			return fmt.Errorf("making the seed of %s: %w", name, err)
		}
		want[name] = map[string][]byte{seedFile: seed, authorityFile: authority.certificate}
	}
	users, err := permission.KeyConfig(public)
	want["nats-server"]["users.conf"] = users
	return err
}

// secret is what is there, or a new one.
func (s Set) secret(name, file string) []byte {
	if there := s[name][file]; len(there) > 0 {
		return there
	}
	return []byte(rand.Text())
}

// openFGAConfig is what OpenFGA may not be told in a variable. Its server and its migration call the same
// setting by two names.
func openFGAConfig(token, password []byte) []byte {
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
