package command

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	"github.com/entail-dev/entail/services/entail/internal/allinone"
	"github.com/entail-dev/entail/services/entail/internal/exit"
)

// apiEndpoint is a query API: its name, the environment variable with its URL, and its port in `entail up`. A flag wins over
// both.
type apiEndpoint struct {
	name, env string
	port      int
}

func newSyncCall(cmd *cobra.Command, around IOStreams) *apiCall[syncv1connect.SyncServiceClient] {
	return newAPICall(cmd, around, apiEndpoint{"SyncService", "ENTAIL_SERVER", allinone.Defaults().Ports.Watcher}, syncv1connect.NewSyncServiceClient)
}

func newAccessCall(cmd *cobra.Command, around IOStreams) *apiCall[accessv1connect.AccessServiceClient] {
	of := apiEndpoint{"AccessService", "ENTAIL_ACCESS_SERVER", allinone.Defaults().Ports.Webhook}
	q := newAPICall(cmd, around, of, accessv1connect.NewAccessServiceClient)
	bindMinRevisionFlag(cmd, &q.connection)
	cmd.Flags().StringVar(&q.connection.after, "after", "",
		"wait until the answer includes the present state or the deletion of `KIND/[NAMESPACE/]NAME`, such as policybinding/default/on-acme")
	return q
}

// bindMinRevisionFlag defines --min-revision. An answer then waits until it is at least as new as that revision.
func bindMinRevisionFlag(cmd *cobra.Command, c *apiConnection) {
	cmd.Flags().StringVar(&c.minRevision, "min-revision", "",
		"wait until the answer includes this `revision` of an earlier answer or of a trace (-o json prints it)")
}

func newInferenceCall(cmd *cobra.Command, around IOStreams) *apiCall[inferencev1connect.InferenceServiceClient] {
	q := newInferenceWatchCall(cmd, around)
	bindMinRevisionFlag(cmd, &q.connection)
	return q
}

// newInferenceWatchCall has no --min-revision: a watch resumes from tokens.
func newInferenceWatchCall(cmd *cobra.Command, around IOStreams) *apiCall[inferencev1connect.InferenceServiceClient] {
	of := apiEndpoint{"InferenceService", "ENTAIL_INFERENCE_SERVER", allinone.Defaults().Ports.ImpliedRole}
	return newAPICall(cmd, around, of, inferencev1connect.NewInferenceServiceClient)
}

func newStoreCall(cmd *cobra.Command, around IOStreams) *apiCall[storev1connect.StoreServiceClient] {
	return newAPICall(cmd, around, storeAPI(), storev1connect.NewStoreServiceClient)
}

func newTupleCall(cmd *cobra.Command, around IOStreams) *apiCall[tuplev1connect.TupleServiceClient] {
	of := apiEndpoint{"TupleService", "ENTAIL_TUPLE_SERVER", allinone.Defaults().Ports.TupleSync}
	return newAPICall(cmd, around, of, tuplev1connect.NewTupleServiceClient)
}

func newOpenSearchCall(cmd *cobra.Command, around IOStreams) *apiCall[opensearchv1connect.OpenSearchServiceClient] {
	of := apiEndpoint{"OpenSearchService", "ENTAIL_OPENSEARCH_SERVER", allinone.Defaults().Ports.OpenSearchSync}
	return newAPICall(cmd, around, of, opensearchv1connect.NewOpenSearchServiceClient)
}

// storeAPI returns the API of store-sync, which serves StoreService and PolicyService.
func storeAPI() apiEndpoint {
	return apiEndpoint{"StoreService", "ENTAIL_STORE_SERVER", allinone.Defaults().Ports.StoreSync}
}

func (a apiEndpoint) defaultServerURL() string { return fmt.Sprintf("http://127.0.0.1:%d", a.port) }

// Environment variables; a flag wins over its variable.
const (
	envToken     = "ENTAIL_TOKEN"
	envTokenFile = "ENTAIL_TOKEN_FILE" //nolint:gosec // A variable's name, not a token.
	envCAFile    = "ENTAIL_CA_FILE"
)

const (
	defaultTimeout = 10 * time.Second
	maxAnswer      = 32 << 20
	maxToken       = 64 << 10
)

// apiConnection holds the settings with which a command reaches an API.
type apiConnection struct {
	api                              apiEndpoint
	server, token, tokenFile, caFile string
	minRevision, after               string
	// object is the parsed value of after.
	object  *eventv1.ObjectRef
	timeout time.Duration
}

func (c *apiConnection) bindFlags(fs *pflag.FlagSet, getenv func(string) string) {
	c.token = getenv(envToken)
	fs.StringVar(&c.server, "server", cmp.Or(getenv(c.api.env), c.api.defaultServerURL()),
		"`URL` of "+c.api.name+" (env "+c.api.env+")")
	fs.StringVar(&c.tokenFile, "token-file", getenv(envTokenFile),
		"`file` with a bearer token, for servers with --auth=kubernetes (env "+envTokenFile+"; "+envToken+" holds a token itself)")
	fs.StringVar(&c.caFile, "ca-file", getenv(envCAFile), "`file` with the CA of the server, instead of the system's (env "+envCAFile+")")
	fs.DurationVar(&c.timeout, "timeout", defaultTimeout, "time limit of one request")
}

// newAPIClient returns a client of an API.
func newAPIClient[Client any](c *apiConnection, client func(connect.HTTPClient, string, ...connect.ClientOption) Client) (Client, error) {
	transport, err := c.newAuthenticatedTransport()
	if err != nil {
		return *new(Client), err
	}
	options := []connect.ClientOption{connect.WithReadMaxBytes(maxAnswer), connect.WithInterceptors(connect.UnaryInterceptorFunc(c.minimumStateInterceptor))}
	return client(&http.Client{Transport: transport, Timeout: c.timeout}, c.server, options...), nil
}

// minimumStateInterceptor sets the minimum revision and object in every request that has a field for them.
func (c *apiConnection) minimumStateInterceptor(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if m, ok := request.Any().(proto.Message); ok && (c.minRevision != "" || c.object != nil) {
			fields := m.ProtoReflect().Descriptor().Fields()
			if field := fields.ByName("min_revision"); field != nil {
				m.ProtoReflect().Set(field, protoreflect.ValueOfString(c.minRevision))
			}
			if field := fields.ByName("at_least"); field != nil {
				least := &accessv1.AtLeast{Revision: c.minRevision, Object: c.object}
				m.ProtoReflect().Set(field, protoreflect.ValueOfMessage(least.ProtoReflect()))
			}
		}
		return next(ctx, request)
	}
}

// newAuthenticatedTransport validates the settings and returns the transport. It refuses to send a token over plain HTTP, except on
// loopback.
func (c *apiConnection) newAuthenticatedTransport() (http.RoundTripper, error) {
	server, err := url.Parse(c.server)
	if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" {
		return nil, fmt.Errorf("%w: --server %q is not an http or https URL, such as %s", exit.ErrUsage, c.server, c.api.defaultServerURL())
	}
	if c.after != "" {
		if c.object, err = parseIAMObject(c.after); err != nil {
			return nil, err
		}
	}
	token, err := c.readToken()
	if err != nil {
		return nil, err
	}
	if token != "" && server.Scheme == "http" && !isLoopback(server.Hostname()) {
		return nil, fmt.Errorf("%w: the token would be sent to %s without encryption: use an https URL", exit.ErrUsage, server.Host)
	}
	transport, err := c.newTLSTransport()
	if err != nil {
		return nil, err
	}
	return bearerTransport{token: token, next: transport}, nil
}

func (c *apiConnection) readToken() (string, error) {
	if c.tokenFile == "" {
		return c.token, nil
	}
	token, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("%w: read --token-file: %w", exit.ErrUsage, err)
	}
	token = bytes.TrimSpace(token)
	if len(token) == 0 || len(token) > maxToken || bytes.ContainsAny(token, " \r\n\t") {
		return "", fmt.Errorf("%w: --token-file %s does not hold one token", exit.ErrUsage, c.tokenFile)
	}
	return string(token), nil
}

func (c *apiConnection) newTLSTransport() (http.RoundTripper, error) {
	if c.caFile == "" {
		return http.DefaultTransport, nil
	}
	pem, err := os.ReadFile(c.caFile)
	if err != nil {
		return nil, fmt.Errorf("%w: read --ca-file: %w", exit.ErrUsage, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: --ca-file %s holds no PEM certificate", exit.ErrUsage, c.caFile)
	}
	return &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// bearerTransport adds a token to every request.
type bearerTransport struct {
	token string
	next  http.RoundTripper
}

func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", r.URL.Host, err)
	}
	return response, nil
}

// describeError adds a hint to an error, if the user can act on it.
func describeError(err error) string {
	if errors.Is(err, exit.ErrUsage) {
		return err.Error() + " (--help shows how)"
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	if undecided, ok := errors.AsType[undecidedError](err); ok {
		return undecided.Error()
	}
	var answer *connect.Error
	if !errors.As(err, &answer) {
		return err.Error()
	}
	switch answer.Code() {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		return answer.Message() + "\nis `entail up` running? --server names another server"
	case connect.CodeUnimplemented:
		return answer.Message() + "\nthis address does not serve the API of the command; --server names another server, `entail COMMAND --help` its default"
	case connect.CodeUnauthenticated, connect.CodePermissionDenied:
		return answer.Message() + "\n--token-file or " + envToken + " gives a token"
	default:
		return answer.Message()
	}
}
