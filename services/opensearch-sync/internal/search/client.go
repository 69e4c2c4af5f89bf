package search

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/opensearch-project/opensearch-go/v4"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

const (
	base = "/_plugins/_security/api/"
	// These timeouts bound how long a dead cluster delays a request. A change of many entities can take long.
	dialTimeout   = 5 * time.Second
	listTimeout   = 20 * time.Second
	changeTimeout = 90 * time.Second
	// maxAnswer bounds an answer other than a list, in bytes.
	maxAnswer = 1 << 20
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
	// maxUUID bounds the UUID of a cluster. OpenSearch uses 22 letters and digits.
	maxUUID = 64
)

// ConnectionSettings holds the configuration of a connection.
type ConnectionSettings struct {
	// URL has the scheme https, a host and an optional port, and nothing else.
	URL string
	// Certificate and Key, in PEM, identify an administrator. Without them User and Password are used.
	Certificate, Key []byte
	User, Password   string
	// CA, in PEM, has issued the server's certificate. Insecure accepts any certificate.
	CA       []byte
	Insecure bool
	// ServerName is the name in the server's certificate, if it differs from the host.
	ServerName string
	// Local permits addresses of this machine and its link.
	Local bool
	// Forbidden lists addresses (host, or host:port) that are never called.
	Forbidden []string
	// Guard, if set, wraps the transport, for example to check the lease before each change.
	Guard func(http.RoundTripper) http.RoundTripper
}

// Client calls the security API of one cluster.
type Client struct {
	api       *opensearch.Client
	transport *http.Transport
	// secrets holds the credentials of the client. No error contains them.
	secrets []string
	// listing has room for one list at a time.
	listing chan struct{}

	mu sync.Mutex
	// identity is the identity of the cluster since the last dial. A new connection may lead to another cluster.
	identity ClusterIdentity
	dialed   int
}

// New returns a client, or an error about the settings. It does not connect yet.
func New(s ConnectionSettings) (*Client, error) {
	address, err := url.Parse(s.URL)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" ||
		address.Path != "" && address.Path != "/" {
		return nil, errors.New("the URL is not https://host:port")
	}
	secured, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	c := &Client{listing: make(chan struct{}, 1)}
	c.transport = &http.Transport{ // It has no HTTP/2, so that a request that is given up closes its connection.
		DialContext: c.dialFunc(&net.Dialer{Timeout: dialTimeout, ControlContext: s.checkAddress}), TLSClientConfig: secured,
		TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxHeader,
	}
	var through http.RoundTripper = c.transport
	if s.Guard != nil {
		through = s.Guard(c.transport)
	}
	cfg := opensearch.Config{Addresses: []string{"https://" + address.Host}, Transport: through, DisableRetry: true, HealthCheckMaxRetries: -1}
	if len(s.Certificate) == 0 {
		cfg.Username, cfg.Password = s.User, s.Password
		c.secrets = []string{s.Password, base64.StdEncoding.EncodeToString([]byte(s.User + ":" + s.Password))}
	}
	if c.api, err = opensearch.NewClient(cfg); err != nil {
		return nil, errors.New("the client refuses its settings")
	}
	return c, nil
}

// dialFunc returns a dial function that drops the known identity with each new connection. Closing a connection discards
// what was not sent yet, so a change that was given up does not take effect after a long outage.
func (c *Client) dialFunc(dialer *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c.mu.Lock()
		c.identity = ClusterIdentity{}
		c.dialed++
		c.mu.Unlock()
		connection, err := dialer.DialContext(ctx, network, address)
		if tcp, is := connection.(*net.TCPConn); is {
			_ = tcp.SetLinger(0) // It fails only for a connection that is broken already.
		}
		return connection, err
	}
}

func (s ConnectionSettings) tlsConfig() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	switch {
	case len(s.CA) > 0:
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(s.CA) {
			return nil, errors.New("ca.crt holds no certificate")
		}
	case s.Insecure:
		cfg.InsecureSkipVerify = true // The connection asks for it explicitly.
	default:
		return nil, errors.New("there is no CA: name a Secret with ca.crt in caSecret, or set insecureSkipVerify: true")
	}
	if len(s.Certificate) > 0 {
		pair, err := tls.X509KeyPair(s.Certificate, s.Key)
		if err != nil {
			return nil, errors.New("tls.crt and tls.key are no certificate with its key")
		}
		cfg.Certificates = []tls.Certificate{pair}
	} else if s.User == "" || s.Password == "" {
		return nil, errors.New("there are neither tls.crt and tls.key nor username and password")
	}
	return cfg, nil
}

// Close closes idle connections and ends the background work of the client.
func (c *Client) Close() {
	_ = c.api.Close() // Close has nothing that can fail here.
	c.transport.CloseIdleConnections()
}

// unformed is the UUID that a cluster reports before its nodes have formed it.
const unformed = "_na_"

// ClusterIdentity distinguishes a cluster from others.
type ClusterIdentity struct {
	// UUID is the UUID that the cluster reports.
	UUID string
	// Key is the SHA-256 digest of the server's public key. The TLS handshake proves that the server holds the private
	// key.
	Key [sha256.Size]byte
}

// ClusterUUID returns the UUID of the connected cluster.
func (c *Client) ClusterUUID(ctx context.Context) (string, error) {
	is, err := c.Identify(ctx)
	return is.UUID, err
}

// Identify returns the identity of the connected cluster. It sends one request for each connection.
func (c *Client) Identify(ctx context.Context) (ClusterIdentity, error) {
	c.mu.Lock()
	known, dialed := c.identity, c.dialed
	c.mu.Unlock()
	if known.UUID != "" {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	response, err := c.sendRequest(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return ClusterIdentity{}, fmt.Errorf("asking which cluster it is: %w", err)
	}
	defer response.Body.Close()
	var says struct {
		UUID string `json:"cluster_uuid"`
	}
	data, err := readBody(response.Body)
	if err != nil {
		return ClusterIdentity{}, err
	}
	if err := json.Unmarshal(data, &says); err != nil || says.UUID == "" || says.UUID == unformed || len(says.UUID) > maxUUID {
		return ClusterIdentity{}, fault.Unavailable(errors.New("OpenSearch does not return the UUID of its cluster"))
	}
	is := ClusterIdentity{UUID: says.UUID}
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		is.Key = sha256.Sum256(response.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialed <= dialed+1 { // This request itself may have dialed once.
		c.identity = is
	}
	return is, nil
}

// patchOperation is one operation of a JSON patch (RFC 6902).
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patchOperations returns the patch operations of one action.
func patchOperations(a plan.Action) (all []patchOperation) {
	path := "/" + escapeJSONPointer(a.Name)
	switch {
	case a.Body == nil:
		return []patchOperation{{Op: "remove", Path: path}}
	case a.Was != nil:
		for _, edit := range a.EntryEdits() {
			all = append(all, patchOperation{Op: edit.Op, Path: path + "/" + edit.Path, Value: edit.Value})
		}
		return all
	case len(a.Fields) == 0:
		return []patchOperation{{Op: "add", Path: path, Value: a.Body}}
	}
	for _, field := range a.Fields { // OpenSearch refuses all of them if the entity is gone.
		if value, ok := a.Body[field]; ok {
			all = append(all, patchOperation{Op: "add", Path: path + "/" + field, Value: value})
		} else {
			all = append(all, patchOperation{Op: "remove", Path: path + "/" + field})
		}
	}
	return all
}

// PatchEntities makes all of several changes, or none.
func (c *Client) PatchEntities(ctx context.Context, kind plan.EntityKind, actions []plan.Action) error {
	if slices.ContainsFunc(actions, func(a plan.Action) bool { return IsMisreadName(a.Name) }) {
		return c.removeMisreadEntity(ctx, kind, actions)
	}
	var all []patchOperation
	for _, a := range actions {
		all = append(all, patchOperations(a)...)
	}
	return c.sendChange(ctx, changeRequest{http.MethodPatch, string(kind), all, ""})
}

// removeMisreadEntity removes an entity whose name [IsMisreadName] reports. It refuses every other change.
func (c *Client) removeMisreadEntity(ctx context.Context, kind plan.EntityKind, actions []plan.Action) error {
	if len(actions) > 1 || actions[0].Body != nil {
		return misreadNameError()
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	return c.callServer(ctx, http.MethodDelete, base+string(kind)+"/"+url.PathEscape(actions[0].Name), nil)
}

// PutUser writes a user together with its password.
func (c *Client) PutUser(ctx context.Context, name string, body plan.Body, password string) error {
	if IsMisreadName(name) {
		return misreadNameError()
	}
	with := plan.Body{"password": password}
	maps.Copy(with, body)
	return c.sendChange(ctx, changeRequest{http.MethodPut, string(plan.Users) + "/" + url.PathEscape(name), with, password})
}

// FlushAuthCache empties the cluster's cache of logins, so that every user must authenticate again.
func (c *Client) FlushAuthCache(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := c.callServer(ctx, http.MethodDelete, base+"cache", nil); err != nil {
		return fmt.Errorf("emptying the cache of logins: %w", err)
	}
	return nil
}

// changeRequest is a request that changes something. No error contains its secret.
type changeRequest struct {
	method, path string
	body         any
	secret       string
}

func (c *Client) sendChange(ctx context.Context, to changeRequest) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	data, err := json.Marshal(to.body)
	if err != nil {
		return fmt.Errorf("encoding a change of %s: %w", to.path, err)
	}
	return c.callServer(ctx, to.method, base+to.path, data, to.secret)
}

// callServer sends a request and reads the answer to its end.
func (c *Client) callServer(ctx context.Context, method, path string, body []byte, secrets ...string) error {
	response, err := c.sendRequest(ctx, method, path, body, secrets...)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = readBody(response.Body) // HTTP reuses a connection only after the whole body was read.
	return err
}

// sendRequest sends a request. Errors contain none of the secrets.
func (c *Client) sendRequest(ctx context.Context, method, path string, body []byte, secrets ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("creating a request for %s: %w", path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	if body == nil {
		request.Body, request.ContentLength = nil, 0
	}
	response, err := c.api.Stream(request) // Stream follows no redirects.
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("OpenSearch does not answer: %w", err))
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	data, err := readBody(response.Body)
	if err != nil {
		return nil, err
	}
	return nil, answerToError(response.StatusCode, data, append(secrets, c.secrets...)...)
}

// readBody reads an answer other than a list, up to maxAnswer.
func readBody(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fault.Unavailable(fmt.Errorf("OpenSearch ended its answer too early: %w", err))
	case len(data) > maxAnswer:
		return nil, fault.Unavailable(fmt.Errorf("OpenSearch answers with more than %d bytes", maxAnswer))
	}
	return data, nil
}
