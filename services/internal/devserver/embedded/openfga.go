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

// OpenFGAConfig configures OpenFGA.
type OpenFGAConfig struct {
	// File is a SQLite database, which is created if it is missing. If it is empty, data is kept in memory.
	File string
	// UnsafeNoFsync makes the server not wait for the disk. A power failure can then destroy File.
	UnsafeNoFsync bool
	// GRPCPort is the port of the gRPC API. With 0, a free port is used.
	GRPCPort int
	// HTTP adds the HTTP API on HTTPPort. With port 0, a free port is used.
	HTTP     bool
	HTTPPort int
	// MaxTypes bounds the types of a model, MaxTuples the tuples of a Write call, and MaxModelBytes the size of a
	// model. Zero means the server's default.
	MaxTypes, MaxTuples, MaxModelBytes int
	// ServerOptions configures gRPC, for example with interceptors. HTTP requests also pass through the interceptors.
	// The HTTP API does not work if the options require TLS.
	ServerOptions []grpc.ServerOption
	// Log receives warnings and errors. Nil drops them.
	Log *slog.Logger
}

// OpenFGAServer is a running OpenFGA server.
type OpenFGAServer struct {
	service  *server.Server
	grpc     *grpc.Server
	grpcPort int
	http     *openFGAHTTPServer
	stop     sync.Once
}

const openFGAStopTimeout = 5 * time.Second

// StartOpenFGA starts OpenFGA and returns when it accepts connections.
//
// It creates the server in the same way as OpenFGA's own command, but does not use that command. The command ends on
// signals before the services have drained, and replaces the process-wide settings of tracing and metrics.
func StartOpenFGA(cfg OpenFGAConfig) (*OpenFGAServer, error) {
	log := newOpenFGALogger(cfg.Log)
	listener, err := devserver.ListenLoopback("OpenFGA", cfg.GRPCPort)
	if err != nil {
		return nil, err
	}
	service, err := newOpenFGAService(cfg, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting OpenFGA: %w", err), listener.Close())
	}
	o := &OpenFGAServer{service: service, grpc: newGRPCServer(cfg, service, log), grpcPort: devserver.PortOf(listener.Addr())}
	go func() { _ = o.grpc.Serve(listener) }() // Serve returns only after Stop.
	if cfg.HTTP {
		if o.http, err = startOpenFGAHTTPServer(o.GRPCTarget(), cfg.HTTPPort); err != nil {
			o.Stop()
			return nil, err
		}
	}
	return o, nil
}

// GRPCTarget returns host:port of the gRPC API.
func (o *OpenFGAServer) GRPCTarget() string { return devserver.LoopbackAddress(o.grpcPort) }

// GRPCPort returns the port of the gRPC API.
func (o *OpenFGAServer) GRPCPort() int { return o.grpcPort }

// URL returns the URL of the HTTP API, or "" if it is off.
func (o *OpenFGAServer) URL() string {
	if o.http == nil {
		return ""
	}
	return o.http.url
}

// Stop stops the server. Running calls may continue for at most openFGAStopTimeout.
func (o *OpenFGAServer) Stop() {
	o.stop.Do(func() {
		if o.http != nil {
			o.http.stopServer()
		}
		hard := time.AfterFunc(openFGAStopTimeout, o.grpc.Stop)
		o.grpc.GracefulStop()
		hard.Stop()
		o.service.Close()
	})
}

func newOpenFGAService(cfg OpenFGAConfig, log logger.Logger) (*server.Server, error) {
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

func newGRPCServer(cfg OpenFGAConfig, service *server.Server, log logger.Logger) *grpc.Server {
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
