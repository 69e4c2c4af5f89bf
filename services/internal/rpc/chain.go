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

// chain is what every call goes through, from the outside: authentication, before
// anything is decoded; trace; edge; validation; authorization; the service.
type chain struct {
	edge     *edge
	reviewer *reviewer           // nil when everybody may call
	trace    connect.Interceptor // nil when calls are not traced
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

// public is for health and reflection, which tell nothing that a caller could not read in the sources.
func (c *chain) public() []connect.HandlerOption {
	return []connect.HandlerOption{connect.WithReadMaxBytes(maxBody), compression(), connect.WithInterceptors(c.edge)}
}

func (c *chain) options(h Handler) []connect.HandlerOption {
	options := []connect.HandlerOption{connect.WithReadMaxBytes(maxBody), compression(), codecs()}
	if c.trace != nil {
		options = append(options, connect.WithInterceptors(c.trace))
	}
	options = append(options, connect.WithInterceptors(c.edge, c.validate))
	if c.reviewer != nil {
		options = append(options, connect.WithRequestGate(c.authenticate), connect.WithInterceptors(authorize{c.reviewer, h.access, h.own}))
	}
	return options
}

// authenticate is outside of the edge, so it brings its own.
func (c *chain) authenticate(ctx context.Context, spec connect.Spec, _ connect.Peer, header http.Header) (context.Context, error) {
	started := time.Now()
	known, err := c.reviewer.authenticate(ctx, header)
	if err != nil {
		return nil, c.edge.settle(ctx, spec.Procedure, started, err)
	}
	return known, nil
}
