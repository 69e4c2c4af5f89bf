package opensearchsync

import (
	"bytes"
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
)

// connections keeps one client per cluster, as long as how to reach it stays the same.
type connections struct {
	secrets   secrets
	local     bool
	forbidden []string
	guard     func(http.RoundTripper) http.RoundTripper
	// needed reports whether anybody may still want to reach the cluster of a UID.
	needed func(uid string) bool
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]*connection
}

// connection is a client, with what is known of the server.
type connection struct {
	client *search.Client
	logins *logins
	digest [sha256.Size]byte
	// key stands for passwords; it takes a moment the first time.
	key func() ([]byte, error)
	// tags are those of passwords, by the UIDs of users, of the last pass over users: only the next one asks for them.
	tags map[string]tag

	mu sync.Mutex
	// identity is that of the server in the last pass, and address what it was reached by: URL and CA, zero without a CA.
	identity search.Identity
	address  [sha256.Size]byte
	// asking is how many passes wait for the server; silent is why it gave no answer the last time.
	asking int
	silent error
	asked  bool
}

func (c *connection) close() {
	c.logins.close()
	c.client.Close()
}

// enter lets a pass ask the server. One that gave no answer is asked by one pass at a time: the others would only keep workers from
// clusters that answer. Whoever has no second chance asks anyway.
func (c *connection) enter(anyway bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent != nil && c.asking > 0 && !anyway {
		return c.silent
	}
	c.asking++
	return nil
}

// leave is told what a pass got for an answer. It reports whether the server answers again.
func (c *connection) leave(err error) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking--
	again = c.silent != nil && err == nil
	c.silent, c.asked = err, true
	return again
}

// leadsWhere reports whether a connection of another cluster object leads to the server of c: both say the same UUID, and were
// reached at the same address by the same CA, or have proven the same key.
func (c *connection) leadsWhere(other *connection) bool {
	ours, address := c.seen()
	theirs, at := other.seen()
	var none [sha256.Size]byte
	return ours.UUID != "" && ours.UUID == theirs.UUID && (address != none && address == at || ours.Key != none && ours.Key == theirs.Key)
}

// seen returns which server the last pass found, and where.
func (c *connection) seen() (search.Identity, [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identity, c.address
}

// identify asks which server it is, and remembers it.
func (c *connection) identify(ctx context.Context) (string, error) {
	is, err := c.client.Identify(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity = is
	return is.UUID, err
}

// notReadyError is why a cluster cannot be reached, which waits for a person or the cluster.
type notReadyError struct{ reason, message string }

// Error implements error.
func (e *notReadyError) Error() string { return e.message }

// to returns the connection to a cluster.
func (c *connections) to(ctx context.Context, cluster *opensearchv1.OpenSearchCluster) (*connection, error) {
	settings, err := c.settings(ctx, cluster)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(bytes.Join([][]byte{
		[]byte(settings.URL), settings.Certificate, settings.Key, []byte(settings.User), []byte(settings.Password), settings.CA,
		[]byte(fmt.Sprint(settings.Insecure, settings.ServerName)),
	}, []byte{0}))
	c.mu.Lock()
	defer c.mu.Unlock()
	uid := string(cluster.UID)
	if has := c.open[uid]; has != nil {
		if has.digest == digest {
			return has, nil
		}
		has.close()
		delete(c.open, uid)
	}
	settings.Local, settings.Forbidden, settings.Guard = c.local, c.forbidden, c.guard
	client, err := search.New(settings)
	if err != nil {
		return nil, &notReadyError{"ConnectionInvalid", "the connection cannot be used: " + err.Error()}
	}
	c.drop()
	address := [sha256.Size]byte{}
	if len(settings.CA) > 0 {
		address = sha256.Sum256(append([]byte(settings.URL+"\x00"), settings.CA...))
	}
	c.open[uid] = &connection{
		address: address, client: client, logins: newLogins(client.ForgetLogins, c.log), digest: digest,
		key: sync.OnceValues(func() ([]byte, error) { return tagKey(uid, settings) }),
	}
	return c.open[uid], nil
}

// stretches is how often a password is hashed for a key.
const stretches = 600_000

// tagKey is the key of what stands for passwords in a cluster, made of what lets us write any of them: nobody else can tell a password
// from it. People may see, by a role that compares it with fields, what stands for their own: an administrator's password, which
// people think up, is not to be guessed from that.
func tagKey(uid string, s search.Settings) ([]byte, error) {
	salt := "entail-password\x00" + uid
	if len(s.Certificate) > 0 {
		key := sha256.Sum256(append([]byte(salt+"\x00"), s.Key...))
		return key[:], nil
	}
	return pbkdf2.Key(sha256.New, s.Password, []byte(salt), stretches, sha256.Size)
}

// sharing returns the UIDs of the other cluster objects whose connections lead to the same server as to.
func (c *connections) sharing(to *connection) (uids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, other := range c.open {
		if other != to && to.leadsWhere(other) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// last is the connection that there was to a cluster of which nothing is declared any more; nil without.
func (c *connections) last(uid string) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[uid]
}

// dropUnneeded lets connections go that nobody needs any more. It reports whether one has something to do first.
func (c *connections) dropUnneeded() (busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drop()
}

// drop is dropUnneeded for who has the lock.
func (c *connections) drop() (busy bool) {
	for uid, has := range c.open {
		switch {
		case c.needed(uid):
		case has.logins.busy():
			busy = true
		default:
			has.close()
			delete(c.open, uid)
		}
	}
	return busy
}

// close lets all connections go.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, has := range c.open {
		has.close()
	}
}

// settings are what the cluster says, with what is in the Secrets that it names.
func (c *connections) settings(ctx context.Context, cluster *opensearchv1.OpenSearchCluster) (search.Settings, error) {
	r, named := reader{ctx: ctx, secrets: c.secrets, namespace: cluster.Namespace}, cluster.Secrets()
	switch {
	case named.Connection != "":
		r.all(named)
	case cluster.Spec.Connection != nil:
		r.connection(cluster.Spec.Connection, named)
	case cluster.Status.Phase == opensearchv1.Running:
		r.operated(cluster, named)
	default:
		return search.Settings{}, &notReadyError{"ClusterNotRunning", "the cluster is not running yet, and says no other connection"}
	}
	if r.err == nil {
		return r.into, nil
	}
	reason := "SecretMissing"
	switch {
	case errors.Is(r.err, errSecretForbidden):
		reason = "SecretForbidden"
	case !errors.Is(r.err, errNoSecret):
		return search.Settings{}, r.err
	}
	return search.Settings{}, &notReadyError{reason, "how to reach the cluster is not known: " + r.err.Error()}
}

// reader puts settings together from Secrets.
type reader struct {
	ctx       context.Context //nolint:containedctx // It lives as long as one call.
	secrets   secrets
	namespace string
	into      search.Settings
	err       error
}

// read reads a Secret, unless that has failed before or there is none to read.
func (r *reader) read(name string) map[string][]byte {
	if r.err != nil || name == "" {
		return nil
	}
	var secret corev1.Secret
	secret, r.err = r.secrets.get(r.ctx, r.namespace, name)
	return secret.Data
}

// all is a connection of which everything is in one Secret.
func (r *reader) all(named opensearchv1.ClusterSecrets) {
	data := r.read(named.Connection)
	r.into.URL, r.into.CA = strings.TrimSpace(string(data["url"])), data["ca.crt"]
	r.credentials(data)
	r.admin(data)
}

func (r *reader) credentials(data map[string][]byte) {
	r.into.Certificate, r.into.Key = data["tls.crt"], data["tls.key"]
}

func (r *reader) admin(data map[string][]byte) {
	r.into.User, r.into.Password = strings.TrimSpace(string(data["username"])), strings.TrimRight(string(data["password"]), "\r\n")
}

func (r *reader) connection(c *opensearchv1.Connection, named opensearchv1.ClusterSecrets) {
	r.into.URL, r.into.Insecure = c.URL, c.InsecureSkipVerify
	data := r.read(named.Certificate)
	r.credentials(data)
	r.into.CA = data["ca.crt"]
	r.admin(r.read(named.Credentials))
	if c.CASecret != nil {
		r.into.CA = r.read(named.Authority)["ca.crt"]
	}
}

// operated is a cluster that the public operator runs, with the Secrets that it names so.
func (r *reader) operated(cluster *opensearchv1.OpenSearchCluster, named opensearchv1.ClusterSecrets) {
	general := cluster.Spec.General
	host := cmp.Or(general.OperatorClusterURL, fmt.Sprintf("%s.%s.svc.cluster.local", cmp.Or(general.ServiceName, cluster.Name), cluster.Namespace))
	r.into.URL = "https://" + net.JoinHostPort(host, strconv.Itoa(int(cmp.Or(general.HTTPPort, 9200))))
	r.into.CA = r.read(named.Authority)["ca.crt"]
	if named.Certificate != "" {
		r.credentials(r.read(named.Certificate))
		r.into.ServerName = cluster.Spec.Security.Config.OperatorClientServerName
		return
	}
	r.admin(r.read(named.Credentials))
}
