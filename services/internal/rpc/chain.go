package rpc

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"connectrpc.com/otelconnect"
	"connectrpc.com/validate"
)

// interceptorChain holds the interceptors of a call. The order is: authentication, trace, edge, validation,
// authorization. Authentication runs before the request is decoded.
type interceptorChain struct {
	edge     *boundaryInterceptor
	reviewer *accessReviewer     // nil if callers are not authenticated
	trace    connect.Interceptor // nil if calls are not traced
	validate connect.Interceptor
}

func newInterceptorChain(cfg Config) (*interceptorChain, error) {
	validator, err := protovalidate.New()
	if err != nil {
		return nil, fmt.Errorf("creating the validator of requests: %w", err)
	}
	c := &interceptorChain{validate: validate.NewInterceptor(validate.WithValidator(validator))}
	if c.edge, err = newBoundaryInterceptor(cfg.Log, cfg.Metrics); err != nil {
		return nil, err
	}
	if cfg.Auth == AuthKubernetes {
		if c.reviewer, err = newAccessReviewer(cfg.Kube); err != nil {
			return nil, err
		}
	}
	if cfg.Tracer == nil || cfg.Propagator == nil {
		return c, nil
	}
	c.trace, err = otelconnect.NewInterceptor(
		otelconnect.WithTracerProvider(cfg.Tracer), otelconnect.WithPropagator(cfg.Propagator),
		otelconnect.WithoutMetrics(), otelconnect.WithoutServerPeerAttributes(),
	)
	if err != nil {
		return nil, fmt.Errorf("creating the tracer of calls: %w", err)
	}
	return c, nil
}

func (c *interceptorChain) handlerOptions(h Handler) []connect.HandlerOption {
	options := []connect.HandlerOption{connect.WithReadMaxBytes(maxBody), boundedGzip(), strictCodecs()}
	if c.trace != nil {
		options = append(options, connect.WithInterceptors(c.trace))
	}
	options = append(options, connect.WithInterceptors(c.edge, c.validate))
	if c.reviewer != nil {
		options = append(options, connect.WithRequestGate(c.authenticateCall), connect.WithInterceptors(authorizationInterceptor{c.reviewer, h.access, h.own}))
	}
	return options
}

// authenticateCall authenticates a caller. It runs before the edge interceptor, so it converts its own errors.
func (c *interceptorChain) authenticateCall(ctx context.Context, spec connect.Spec, _ connect.Peer, header http.Header) (context.Context, error) {
	started := time.Now()
	known, err := c.reviewer.authenticateCaller(ctx, header)
	if err != nil {
		return nil, c.edge.toCallerError(ctx, spec.Procedure, started, err)
	}
	return known, nil
}
