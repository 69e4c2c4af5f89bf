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
	"time"

	corev1 "k8s.io/api/core/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
)

// connectionPool holds one client for each cluster while its connection settings stay the same.
type connectionPool struct {
	secrets   secretValueReader
	local     bool
	forbidden []string
	guard     func(http.RoundTripper) http.RoundTripper
	// needed reports whether the connection to the cluster with a UID may still be needed.
	needed func(uid string) bool
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]*clusterConnection
}

// clusterConnection is a client with the observed state of the server.
type clusterConnection struct {
	client *search.Client
	logins *authCacheFlusher
	digest [sha256.Size]byte
	// key returns the key of password tags. The first call can take a moment.
	key func() ([]byte, error)
	// tags holds the password tags of the last run over users, by UID. Only the next such run uses them.
	tags map[string]passwordTag

	mu sync.Mutex
	// identity is the server's identity in the last run. address is a digest of the URL and CA, or zero without a CA.
	identity search.ClusterIdentity
	address  [sha256.Size]byte
	// asking counts the runs that wait for the server. silent is the error of the last call, or nil.
	asking int
	silent error
	asked  bool
	// answers is when the server began to answer, at first or after calls without an answer.
	answers time.Time
	// answered, slow and large describe the last runs; see [lanes]. alone is held by the one run with large lists.
	answered, slow, large bool
	alone                 sync.Mutex
}

func (c *clusterConnection) closeConnection() {
	c.logins.cancelFlush()
	c.client.Close()
}

// beginRun registers a run that calls the server, or returns the last error. Only one run at a time calls a server that
// gave no answer, so that workers stay free for other clusters. anyway skips this limit for cleanups.
func (c *clusterConnection) beginRun(anyway bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent != nil && c.asking > 0 && !anyway {
		return c.silent
	}
	c.asking++
	return nil
}

// endRun records the result of a run's calls. It reports whether the server answers again.
func (c *clusterConnection) endRun(err error) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking--
	again = c.silent != nil && err == nil
	if again || !c.asked && err == nil {
		c.answers = time.Now()
	}
	c.silent, c.asked = err, true
	return again
}

// answersSince returns when the server began to answer.
func (c *clusterConnection) answersSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers
}

// isSameServer reports whether other leads to the same server as c. Both must report the same UUID, and have the same URL
// and CA or the same proven key.
func (c *clusterConnection) isSameServer(other *clusterConnection) bool {
	ours, address := c.lastServerIdentity()
	theirs, at := other.lastServerIdentity()
	var none [sha256.Size]byte
	return ours.UUID != "" && ours.UUID == theirs.UUID && (address != none && address == at || ours.Key != none && ours.Key == theirs.Key)
}

// lastServerIdentity returns the identity and address of the last run.
func (c *clusterConnection) lastServerIdentity() (search.ClusterIdentity, [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identity, c.address
}

// identifyServer returns the UUID of the server and stores its identity.
func (c *clusterConnection) identifyServer(ctx context.Context) (string, error) {
	is, err := c.client.Identify(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity = is
	return is.UUID, err
}

// clusterNotReadyError means that a cluster cannot be reached until it is running or its settings are corrected.
type clusterNotReadyError struct{ reason, message string }

func (e *clusterNotReadyError) Error() string { return e.message }

// connectionFor returns the connection to a cluster. It opens a new one if the settings have changed.
func (c *connectionPool) connectionFor(ctx context.Context, cluster *opensearchv1.OpenSearchCluster) (*clusterConnection, error) {
	settings, err := c.connectionSettings(ctx, cluster)
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
		has.closeConnection()
		delete(c.open, uid)
	}
	settings.Local, settings.Forbidden, settings.Guard = c.local, c.forbidden, c.guard
	client, err := search.New(settings)
	if err != nil {
		return nil, &clusterNotReadyError{"ConnectionInvalid", "the connection cannot be used: " + err.Error()}
	}
	c.closeUnneededLocked()
	address := [sha256.Size]byte{}
	if len(settings.CA) > 0 {
		address = sha256.Sum256(append([]byte(settings.URL+"\x00"), settings.CA...))
	}
	c.open[uid] = &clusterConnection{
		address: address, client: client, logins: newAuthCacheFlusher(client.FlushAuthCache, c.log), digest: digest,
		key: sync.OnceValues(func() ([]byte, error) { return passwordTagKey(uid, settings) }),
	}
	return c.open[uid], nil
}

// stretches is the number of PBKDF2 iterations for the key of password tags.
const stretches = 600_000

// passwordTagKey derives the key of password tags from the credentials, which can write any password anyway. Users may be able
// to read the tag of their own password, through a role that compares it with fields. PBKDF2 keeps them from guessing
// the administrator's password from it.
func passwordTagKey(uid string, s search.ConnectionSettings) ([]byte, error) {
	salt := "entail-password\x00" + uid
	if len(s.Certificate) > 0 {
		key := sha256.Sum256(append([]byte(salt+"\x00"), s.Key...))
		return key[:], nil
	}
	return pbkdf2.Key(sha256.New, s.Password, []byte(salt), stretches, sha256.Size)
}

// clustersOnSameServer returns the UIDs of the other cluster objects whose connections lead to the same server as to.
func (c *connectionPool) clustersOnSameServer(to *clusterConnection) (uids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, other := range c.open {
		if other != to && to.isSameServer(other) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// existingConnection returns the open connection to a cluster that is no longer declared, or nil.
func (c *connectionPool) existingConnection(uid string) *clusterConnection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[uid]
}

// closeUnneeded closes the connections that are no longer needed. It reports whether one must first empty its cache of
// logins.
func (c *connectionPool) closeUnneeded() (busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closeUnneededLocked()
}

// closeUnneededLocked closes connections like closeUnneeded. The caller holds the lock.
func (c *connectionPool) closeUnneededLocked() (busy bool) {
	for uid, has := range c.open {
		switch {
		case c.needed(uid):
		case has.logins.isFlushPending():
			busy = true
		default:
			has.closeConnection()
			delete(c.open, uid)
		}
	}
	return busy
}

// closeAll closes all connections.
func (c *connectionPool) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, has := range c.open {
		has.closeConnection()
	}
}

// connectionSettings returns the connection settings of a cluster, with the values of the Secrets that it names. The error is a
// [clusterNotReadyError] if they are incomplete.
func (c *connectionPool) connectionSettings(ctx context.Context, cluster *opensearchv1.OpenSearchCluster) (search.ConnectionSettings, error) {
	r, named := settingsReader{ctx: ctx, secrets: c.secrets, namespace: cluster.Namespace}, cluster.ConnectionSecrets()
	switch {
	case named.Connection != "":
		r.readFromOneSecret(named)
	case cluster.Spec.Connection != nil:
		r.readDeclaredConnection(cluster.Spec.Connection, named)
	case cluster.Status.Phase == opensearchv1.Running:
		r.readOperatorConnection(cluster, named)
	default:
		return search.ConnectionSettings{}, &clusterNotReadyError{"ClusterNotRunning", "the cluster is not running yet, and has no other connection"}
	}
	if r.err == nil {
		return r.into, nil
	}
	reason := "SecretMissing"
	switch {
	case errors.Is(r.err, errSecretForbidden):
		reason = "SecretForbidden"
	case !errors.Is(r.err, errNoSecret):
		return search.ConnectionSettings{}, r.err
	}
	return search.ConnectionSettings{}, &clusterNotReadyError{reason, "how to reach the cluster is not known: " + r.err.Error()}
}

// settingsReader builds settings from Secrets.
type settingsReader struct {
	ctx       context.Context //nolint:containedctx // It lives as long as one call.
	secrets   secretValueReader
	namespace string
	into      search.ConnectionSettings
	err       error
}

// readSecret returns the data of a Secret. It does nothing after an error or for an empty name.
func (r *settingsReader) readSecret(name string) map[string][]byte {
	if r.err != nil || name == "" {
		return nil
	}
	var secret corev1.Secret
	secret, r.err = r.secrets.getSecret(r.ctx, r.namespace, name)
	return secret.Data
}

// readFromOneSecret reads a connection whose settings are all in one Secret.
func (r *settingsReader) readFromOneSecret(named opensearchv1.ClusterSecrets) {
	data := r.readSecret(named.Connection)
	r.into.URL, r.into.CA = strings.TrimSpace(string(data["url"])), data["ca.crt"]
	r.readClientCertificate(data)
	r.readBasicCredentials(data)
}

func (r *settingsReader) readClientCertificate(data map[string][]byte) {
	r.into.Certificate, r.into.Key = data["tls.crt"], data["tls.key"]
}

func (r *settingsReader) readBasicCredentials(data map[string][]byte) {
	r.into.User, r.into.Password = strings.TrimSpace(string(data["username"])), strings.TrimRight(string(data["password"]), "\r\n")
}

func (r *settingsReader) readDeclaredConnection(c *opensearchv1.Connection, named opensearchv1.ClusterSecrets) {
	r.into.URL, r.into.Insecure = c.URL, c.InsecureSkipVerify
	data := r.readSecret(named.Certificate)
	r.readClientCertificate(data)
	r.into.CA = data["ca.crt"]
	r.readBasicCredentials(r.readSecret(named.Credentials))
	if c.CASecret != nil {
		r.into.CA = r.readSecret(named.Authority)["ca.crt"]
	}
}

// readOperatorConnection reads the connection to a cluster that the public operator runs.
func (r *settingsReader) readOperatorConnection(cluster *opensearchv1.OpenSearchCluster, named opensearchv1.ClusterSecrets) {
	general := cluster.Spec.General
	host := cmp.Or(general.OperatorClusterURL, fmt.Sprintf("%s.%s.svc.cluster.local", cmp.Or(general.ServiceName, cluster.Name), cluster.Namespace))
	r.into.URL = "https://" + net.JoinHostPort(host, strconv.Itoa(int(cmp.Or(general.HTTPPort, 9200))))
	r.into.CA = r.readSecret(named.Authority)["ca.crt"]
	if named.Certificate != "" {
		r.readClientCertificate(r.readSecret(named.Certificate))
		r.into.ServerName = cluster.Spec.Security.Config.OperatorClientServerName
		return
	}
	r.readBasicCredentials(r.readSecret(named.Credentials))
}
