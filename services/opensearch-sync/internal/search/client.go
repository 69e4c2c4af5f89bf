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
	// dialTimeout and answerTimeout bound how long a dead cluster is waited for; changes of many things may take long.
	dialTimeout   = 5 * time.Second
	listTimeout   = 20 * time.Second
	changeTimeout = 90 * time.Second
	// maxAnswer bounds what is read of an answer that is no list.
	maxAnswer = 1 << 20
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
	// maxUUID bounds what a cluster calls itself; OpenSearch has 22 letters and digits.
	maxUUID = 64
)

// Settings say how to reach a cluster.
type Settings struct {
	// URL is https, with a host and nothing else but a port.
	URL string
	// Certificate and Key, in PEM, are an administrator's; User and Password are used without.
	Certificate, Key []byte
	User, Password   string
	// CA, in PEM, issued the server's certificate; Insecure does without.
	CA       []byte
	Insecure bool
	// ServerName is that in the server's certificate, if it is another than the host.
	ServerName string
	// Local lets the address be one of this machine.
	Local bool
	// Forbidden are addresses, host:port or host alone, that are never called.
	Forbidden []string
	// Guard is asked before each change.
	Guard func(http.RoundTripper) http.RoundTripper
}

// Client talks to one cluster.
type Client struct {
	api       *opensearch.Client
	transport *http.Transport
	// secrets are the client's own, which nobody is told, whatever the server answers.
	secrets []string
	// listing has room for one list at a time.
	listing chan struct{}

	mu sync.Mutex
	// identity is that of the cluster, since it was last dialed: another may be at the address by then.
	identity Identity
	dialed   int
}

// New makes a client, or says what is wrong with the settings. It connects to nothing yet.
func New(s Settings) (*Client, error) {
	address, err := url.Parse(s.URL)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" ||
		address.Path != "" && address.Path != "/" {
		return nil, errors.New("the URL is not https://host:port")
	}
	secured, err := s.tls()
	if err != nil {
		return nil, err
	}
	c := &Client{listing: make(chan struct{}, 1)}
	c.transport = &http.Transport{
		DialContext: c.dial(&net.Dialer{Timeout: dialTimeout, ControlContext: s.permit}), TLSClientConfig: secured,
		TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader,
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

// dial forgets, with each connection, which cluster there was before.
func (c *Client) dial(dialer *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c.mu.Lock()
		c.identity = Identity{}
		c.dialed++
		c.mu.Unlock()
		return dialer.DialContext(ctx, network, address)
	}
}

func (s Settings) tls() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	switch {
	case len(s.CA) > 0:
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(s.CA) {
			return nil, errors.New("ca.crt holds no certificate")
		}
	case s.Insecure:
		cfg.InsecureSkipVerify = true // Somebody who may connect has asked for it by name.
	default:
		return nil, errors.New("there is no CA: name a Secret with ca.crt in caSecret, or say insecureSkipVerify: true")
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

// Close lets connections go, and ends what the client does by itself.
func (c *Client) Close() {
	_ = c.api.Close() // It has nothing that could fail.
	c.transport.CloseIdleConnections()
}

// unformed is what a cluster is called that has not found itself yet.
const unformed = "_na_"

// Identity distinguishes a cluster from others.
type Identity struct {
	// UUID is the one that the cluster reports.
	UUID string
	// Key is the digest of the public key that the server has proven to hold the private key of.
	Key [sha256.Size]byte
}

// Server is the UUID of the cluster that is connected to.
func (c *Client) Server(ctx context.Context) (string, error) {
	is, err := c.Identify(ctx)
	return is.UUID, err
}

// Identify asks which cluster it is that is connected to, once for each connection.
func (c *Client) Identify(ctx context.Context) (Identity, error) {
	c.mu.Lock()
	known, dialed := c.identity, c.dialed
	c.mu.Unlock()
	if known.UUID != "" {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	response, err := c.send(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return Identity{}, fmt.Errorf("asking which cluster it is: %w", err)
	}
	defer response.Body.Close()
	var says struct {
		UUID string `json:"cluster_uuid"`
	}
	data, err := readBody(response.Body)
	if err != nil {
		return Identity{}, err
	}
	if err := json.Unmarshal(data, &says); err != nil || says.UUID == "" || says.UUID == unformed || len(says.UUID) > maxUUID {
		return Identity{}, fault.Unavailable(errors.New("OpenSearch does not say which cluster it is"))
	}
	is := Identity{UUID: says.UUID}
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		is.Key = sha256.Sum256(response.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialed <= dialed+1 { // That may have been for this question.
		c.identity = is
	}
	return is, nil
}

// operation is one of a PATCH.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// operations are what one action is made of.
func operations(a plan.Action) (all []operation) {
	path := "/" + pointer(a.Name)
	switch {
	case a.Body == nil:
		return []operation{{Op: "remove", Path: path}}
	case len(a.Fields) == 0:
		return []operation{{Op: "add", Path: path, Value: a.Body}}
	}
	for _, field := range a.Fields { // All of them are refused where the thing is not there any more.
		if value, ok := a.Body[field]; ok {
			all = append(all, operation{Op: "add", Path: path + "/" + field, Value: value})
		} else {
			all = append(all, operation{Op: "remove", Path: path + "/" + field})
		}
	}
	return all
}

// Patch makes several changes at once, or none.
func (c *Client) Patch(ctx context.Context, kind plan.Kind, actions []plan.Action) error {
	if slices.ContainsFunc(actions, func(a plan.Action) bool { return Misread(a.Name) }) {
		return c.removeMisread(ctx, kind, actions)
	}
	var all []operation
	for _, a := range actions {
		all = append(all, operations(a)...)
	}
	return c.change(ctx, change{http.MethodPatch, string(kind), all, ""})
}

// removeMisread removes a thing whose name has a character that a patch would change. It refuses every other change.
func (c *Client) removeMisread(ctx context.Context, kind plan.Kind, actions []plan.Action) error {
	if len(actions) > 1 || actions[0].Body != nil {
		return misread()
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	return c.call(ctx, http.MethodDelete, base+string(kind)+"/"+url.PathEscape(actions[0].Name), nil)
}

// PutUser writes a user with the password.
func (c *Client) PutUser(ctx context.Context, name string, body plan.Body, password string) error {
	if Misread(name) {
		return misread()
	}
	with := plan.Body{"password": password}
	maps.Copy(with, body)
	return c.change(ctx, change{http.MethodPut, string(plan.Users) + "/" + url.PathEscape(name), with, password})
}

// ForgetLogins has the cluster ask everybody for the password again.
func (c *Client) ForgetLogins(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if err := c.call(ctx, http.MethodDelete, base+"cache", nil); err != nil {
		return fmt.Errorf("emptying the cache of logins: %w", err)
	}
	return nil
}

// change is a request that changes something. Nobody is told the secret, whatever the server answers.
type change struct {
	method, path string
	body         any
	secret       string
}

func (c *Client) change(ctx context.Context, to change) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	data, err := json.Marshal(to.body)
	if err != nil {
		return fmt.Errorf("encoding a change of %s: %w", to.path, err)
	}
	return c.call(ctx, to.method, base+to.path, data, to.secret)
}

// call makes a request, and reads the answer.
func (c *Client) call(ctx context.Context, method, path string, body []byte, secrets ...string) error {
	response, err := c.send(ctx, method, path, body, secrets...)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = readBody(response.Body) // A connection is used again once all is read.
	return err
}

// send makes a request. What the server refuses is told without the secrets.
func (c *Client) send(ctx context.Context, method, path string, body []byte, secrets ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request of %s: %w", path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	if body == nil {
		request.Body, request.ContentLength = nil, 0
	}
	response, err := c.api.Stream(request) // It follows no redirects.
	if err != nil {
		return nil, fault.Unavailable(fmt.Errorf("OpenSearch gives no answer: %w", err))
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	data, err := readBody(response.Body)
	if err != nil {
		return nil, err
	}
	return nil, refusal(response.StatusCode, data, append(secrets, c.secrets...)...)
}

// readBody reads an answer that is no list.
func readBody(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fault.Unavailable(fmt.Errorf("OpenSearch breaks off: %w", err))
	case len(data) > maxAnswer:
		return nil, fault.Unavailable(fmt.Errorf("OpenSearch answers with more than %d bytes", maxAnswer))
	}
	return data, nil
}
