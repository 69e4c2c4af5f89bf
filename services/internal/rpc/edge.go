package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
)

// boundaryInterceptor bounds the time of a call, recovers from a panic, converts the error, and records the log and
// metrics. It wraps validation, authorization and the service.
type boundaryInterceptor struct {
	log      *slog.Logger
	duration *prometheus.HistogramVec
}

func newBoundaryInterceptor(log *slog.Logger, metrics prometheus.Registerer) (*boundaryInterceptor, error) {
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "entail_rpc_duration_seconds",
		Help:    "Seconds that calls to query APIs took, by procedure and result.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
	}, []string{"procedure", "code"})
	if err := metrics.Register(duration); err != nil {
		return nil, fmt.Errorf("registering metrics of calls: %w", err)
	}
	return &boundaryInterceptor{log: log, duration: duration}, nil
}

func (e *boundaryInterceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (response connect.AnyResponse, err error) {
		ctx, cancel := context.WithTimeout(ctx, handlerTimeout)
		defer cancel()
		defer func(started time.Time) {
			err = e.toCallerError(ctx, request.Spec().Procedure, started, recoveredError(recover(), err))
		}(time.Now())
		return next(ctx, request)
	}
}

func (e *boundaryInterceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		ctx, cancel := context.WithTimeout(ctx, streamTimeout)
		defer cancel()
		defer func(started time.Time) {
			err = e.toCallerError(ctx, conn.Spec().Procedure, started, recoveredError(recover(), err))
		}(time.Now())
		return next(ctx, conn)
	}
}

func (e *boundaryInterceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func recoveredError(value any, err error) error {
	if value == nil {
		return err
	}
	return fmt.Errorf("panic: %v\n%s", value, debug.Stack())
}

// toCallerError returns the error for the caller. It logs the cause, because the caller may not receive it.
func (e *boundaryInterceptor) toCallerError(ctx context.Context, procedure string, started time.Time, err error) error {
	took := time.Since(started)
	if err == nil {
		e.duration.WithLabelValues(procedure, "ok").Observe(took.Seconds())
		return nil
	}
	failure, told := callerError(ctx, err)
	e.duration.WithLabelValues(procedure, failure.Code().String()).Observe(took.Seconds())
	level := slog.LevelWarn
	switch {
	case told:
		level = slog.LevelDebug
	case failure.Code() == connect.CodeInternal:
		level = slog.LevelError
	}
	e.log.Log(ctx, level, "call failed", "procedure", procedure, "code", failure.Code().String(), "took", took.String(), "error", err)
	return failure
}
