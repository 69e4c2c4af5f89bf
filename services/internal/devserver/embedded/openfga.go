package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/gateway"
	"github.com/openfga/openfga/pkg/logger"
	fgarecovery "github.com/openfga/openfga/pkg/middleware/recovery"
	"github.com/openfga/openfga/pkg/middleware/requestid"
	"github.com/openfga/openfga/pkg/middleware/storeid"
	"github.com/openfga/openfga/pkg/middleware/validator"
	"github.com/openfga/openfga/pkg/server"
	"github.com/openfga/openfga/pkg/server/config"
	"github.com/openfga/openfga/pkg/server/health"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/entail-dev/entail/services/internal/devserver"
)

// OpenFGAConfig says how to run OpenFGA.
type OpenFGAConfig struct {
	// File is a sqlite database, made when missing. Without it everything is in memory.
	File string
	// UnsafeNoFsync does not wait for the disk; a power cut can destroy File.
	UnsafeNoFsync bool
	// GRPCPort to listen on; 0 takes a free one.
	GRPCPort int
	// HTTP serves the HTTP API too, on HTTPPort; 0 takes a free one.
	HTTP     bool
	HTTPPort int
	// MaxTypes of a model, MaxTuples of a Write and MaxModelBytes are the server's defaults when 0.
	MaxTypes, MaxTuples, MaxModelBytes int
	// ServerOptions of gRPC, for TLS or interceptors. HTTP goes through them too, without TLS.
	ServerOptions []grpc.ServerOption
	// Log receives warnings and errors; nil drops them.
	Log *slog.Logger
}

// OpenFGA is a running OpenFGA server.
type OpenFGA struct {
	service *server.Server
	grpc    *grpc.Server
	port    int
	http    *httpAPI
	stop    sync.Once
}

const openFGAStopTimeout = 5 * time.Second

// StartOpenFGA starts OpenFGA and returns when it takes connections.
//
// It puts together what OpenFGA's own command does, without that: the command
// ends on signals by itself, before the services have drained, and replaces
// process-wide settings of tracing and metrics.
func StartOpenFGA(cfg OpenFGAConfig) (*OpenFGA, error) {
	log := openFGALog(cfg.Log)
	listener, err := devserver.Listen("OpenFGA", cfg.GRPCPort)
	if err != nil {
		return nil, err
	}
	service, err := newService(cfg, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting OpenFGA: %w", err), listener.Close())
	}
	o := &OpenFGA{service: service, grpc: newGRPC(cfg, service, log), port: devserver.PortOf(listener.Addr())}
	go func() { _ = o.grpc.Serve(listener) }() // It ends with Stop; until then nothing makes it fail.
	if cfg.HTTP {
		if o.http, err = startHTTP(o.Target(), cfg.HTTPPort); err != nil {
			o.Stop()
			return nil, err
		}
	}
	return o, nil
}

// Target is host:port of the gRPC API.
func (o *OpenFGA) Target() string { return devserver.Address(o.port) }

// Port is that of the gRPC API.
func (o *OpenFGA) Port() int { return o.port }

// URL is that of the HTTP API; empty when it is off.
func (o *OpenFGA) URL() string {
	if o.http == nil {
		return ""
	}
	return o.http.url
}

// Stop lets calls in flight finish for a moment and ends the server.
func (o *OpenFGA) Stop() {
	o.stop.Do(func() {
		if o.http != nil {
			o.http.stop()
		}
		hard := time.AfterFunc(openFGAStopTimeout, o.grpc.Stop)
		o.grpc.GracefulStop()
		hard.Stop()
		o.service.Close()
	})
}

func newService(cfg OpenFGAConfig, log logger.Logger) (*server.Server, error) {
	datastore, tokens, err := openDatastore(cfg, log)
	if err != nil {
		return nil, err
	}
	options := []server.OpenFGAServiceV1Option{
		server.WithDatastore(datastore), server.WithContinuationTokenSerializer(tokens), server.WithLogger(log),
		server.WithTransport(gateway.NewRPCTransport(log)),
		server.WithExperimentals(config.DefaultConfig().Experimentals...),
		server.WithMaxAuthorizationModelSizeInBytes(cmp.Or(cfg.MaxModelBytes, config.DefaultMaxAuthorizationModelSizeInBytes)),
	}
	service, err := server.NewServerWithOpts(options...)
	if err != nil {
		datastore.Close()
		return nil, err
	}
	return service, nil
}

func newGRPC(cfg OpenFGAConfig, service *server.Server, log logger.Logger) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(config.DefaultMaxRPCMessageSizeInBytes),
		grpc.ChainUnaryInterceptor(
			recovery.UnaryServerInterceptor(recovery.WithRecoveryHandlerContext(fgarecovery.PanicRecoveryHandler(log))),
			requestid.NewUnaryInterceptor(), storeid.NewUnaryInterceptor(), validator.UnaryServerInterceptor(),
		),
		grpc.ChainStreamInterceptor(
			recovery.StreamServerInterceptor(recovery.WithRecoveryHandlerContext(fgarecovery.PanicRecoveryHandler(log))),
			requestid.NewStreamingInterceptor(), validator.StreamServerInterceptor(), storeid.NewStreamingInterceptor(),
		),
	}
	s := grpc.NewServer(append(options, cfg.ServerOptions...)...)
	openfgav1.RegisterOpenFGAServiceServer(s, service)
	healthv1.RegisterHealthServer(s, &health.Checker{
		TargetService: service, TargetServiceName: openfgav1.OpenFGAService_ServiceDesc.ServiceName,
	})
	return s
}
