package fga

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"

	"github.com/entail-dev/entail/services/internal/tracing"
)

const (
	// maxMessageBytes bounds a message. A server can be configured to accept models far beyond its default of 256 KiB.
	maxMessageBytes = 16 << 20
	// reconnectDelay bounds the wait between two connection attempts. It is short because callers retry with their own
	// backoff.
	reconnectDelay = 2 * time.Second
	// keepaliveAfter is the time without an answer before a ping, and keepaliveTimeout the wait for the reply. Servers
	// close connections that ping more often.
	keepaliveAfter   = 20 * time.Second
	keepaliveTimeout = 5 * time.Second
	// roundRobin distributes the calls over all addresses of a name.
	roundRobin = `{"loadBalancingConfig":[{"round_robin":{}}]}`
)

// Client is a client of one OpenFGA server. It is safe for concurrent use.
type Client struct {
	conn      *grpc.ClientConn
	api       openfgav1.OpenFGAServiceClient
	tokens    tokenProvider
	idle      func()
	maxTuples int
	health    serverHealth
}

// Dial returns a client. It connects at the first call and reconnects when necessary. The options in more come after
// those of the configuration, so their interceptors run last.
func Dial(cfg Config, more ...grpc.DialOption) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	given, err := cfg.newTokenProvider()
	if err != nil {
		return nil, err
	}
	w, err := cfg.dialSettings(given)
	if err != nil {
		return nil, err
	}
	c := &Client{tokens: given, idle: w.idle, maxTuples: cmp.Or(cfg.MaxTuples, DefaultMaxTuples)}
	own := []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.newCallInterceptor(cmp.Or(cfg.Timeout, DefaultTimeout)))}
	if cfg.Tracer != nil {
		own = append(own, grpc.WithChainUnaryInterceptor(tracing.UnaryClientInterceptor(cfg.Tracer)))
	}
	own = append(own, grpc.WithChainUnaryInterceptor((&serverPause{}).retryInterceptor()))
	if c.conn, err = grpc.NewClient(w.target, slices.Concat(w.options, own, cfg.DialOptions, more, w.last)...); err != nil {
		return nil, fmt.Errorf("preparing connection to OpenFGA at %s: %w", cfg.Target, err)
	}
	c.api = openfgav1.NewOpenFGAServiceClient(c.conn)
	return c, nil
}

// dialSettings holds the dial target and dial options. All other options come after options and before last.
type dialSettings struct {
	target        string
	options, last []grpc.DialOption
	// idle closes idle HTTP connections, which gRPC does not manage.
	idle func()
}

func (c Config) dialSettings(tokens tokenProvider) (dialSettings, error) {
	if c.isHTTPTarget() {
		return c.httpDialSettings(tokens)
	}
	transport, err := c.transportCredentials()
	if err != nil {
		return dialSettings{}, err
	}
	reconnect := backoff.DefaultConfig
	reconnect.BaseDelay, reconnect.MaxDelay = reconnectDelay/20, reconnectDelay
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: reconnectDelay}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveAfter, Timeout: keepaliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
	}
	if scheme, _ := c.splitTarget(); scheme == schemeDNS {
		options = append(options, grpc.WithDefaultServiceConfig(roundRobin))
	}
	if tokens.get != nil {
		options = append(options, grpc.WithPerRPCCredentials(bearerCredentials{tokens: tokens, plaintext: c.isPlaintext()}))
	}
	resolvers := grpc.WithResolvers(dnsBuilder{resolver.Get(schemeDNS)})
	return dialSettings{target: c.Target, options: options, last: []grpc.DialOption{resolvers}, idle: func() {}}, nil
}

// Close closes the connection.
func (c *Client) Close() error {
	c.idle()
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("closing connection to OpenFGA: %w", err)
	}
	return nil
}

// newCallInterceptor returns an interceptor that gives each call a deadline, classifies its error, and records the
// outcome for health checks.
func (c *Client) newCallInterceptor(timeout time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		callCtx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		answered := RecordCallStart(ctx)
		err := classifyError(ctx, invoke(callCtx, method, req, reply, cc, opts...))
		if isUnauthenticated(err) {
			c.tokens.discardRefusedToken()
		}
		c.health.recordOutcome(err)
		answered(err)
		return err
	}
}
