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

// chain lists the interceptors of a call, from the outside: authentication, before anything is decoded; trace; edge;
// validation; authorization; the service.
type chain struct {
	edge     *edge
	reviewer *reviewer           // nil if every caller is allowed
	trace    connect.Interceptor // nil if calls are not traced
	validate connect.Interceptor
}

func newChain(cfg Config) (*chain, error) {
	validator, err := protovalidate.New()
	if err != nil {
		return nil, fmt.Errorf("making a validator of requests: %w", err)
	}
	c := &chain{validate: validate.NewInterceptor(validate.WithValidator(validator))}
	if c.edge, err = newEdge(cfg.Log, cfg.Metrics); err != nil {
		return nil, err
	}
	if cfg.Auth == Kubernetes {
		if c.reviewer, err = newReviewer(cfg.Kube); err != nil {
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
		return nil, fmt.Errorf("making the tracer of calls: %w", err)
	}
	return c, nil
}

// publicOptions returns the options of health and reflection, which reveal nothing that is not in the sources.
func (c *chain) publicOptions() []connect.HandlerOption {
	return []connect.HandlerOption{connect.WithReadMaxBytes(maxBody), boundedGzip(), connect.WithInterceptors(c.edge)}
}

func (c *chain) handlerOptions(h Handler) []connect.HandlerOption {
	options := []connect.HandlerOption{connect.WithReadMaxBytes(maxBody), boundedGzip(), strictCodecs()}
	if c.trace != nil {
		options = append(options, connect.WithInterceptors(c.trace))
	}
	options = append(options, connect.WithInterceptors(c.edge, c.validate))
	if c.reviewer != nil {
		options = append(options, connect.WithRequestGate(c.authenticateCall), connect.WithInterceptors(authorize{c.reviewer, h.access, h.own}))
	}
	return options
}

// authenticateCall runs outside of the edge, so it settles its own errors.
func (c *chain) authenticateCall(ctx context.Context, spec connect.Spec, _ connect.Peer, header http.Header) (context.Context, error) {
	started := time.Now()
	known, err := c.reviewer.authenticateCaller(ctx, header)
	if err != nil {
		return nil, c.edge.settleError(ctx, spec.Procedure, started, err)
	}
	return known, nil
}
