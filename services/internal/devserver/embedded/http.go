package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	fgahttp "github.com/openfga/openfga/pkg/middleware/http"
	fgaerrors "github.com/openfga/openfga/pkg/server/errors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/devserver"
)

const (
	httpReadTimeout = 10 * time.Second
	httpStopTimeout = 5 * time.Second
)

// openFGAHTTPServer serves OpenFGA's HTTP API by calling its gRPC API.
type openFGAHTTPServer struct {
	url    string
	server *http.Server
	conn   *grpc.ClientConn
}

func startOpenFGAHTTPServer(target string, port int) (*openFGAHTTPServer, error) {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("starting OpenFGA's HTTP API: %w", err)
	}
	mux := runtime.NewServeMux(
		runtime.WithForwardResponseOption(fgahttp.HTTPResponseModifier),
		runtime.WithErrorHandler(writeOpenFGAError),
	)
	err = openfgav1.RegisterOpenFGAServiceHandler(context.Background(), mux, conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting OpenFGA's HTTP API: %w", err), conn.Close())
	}
	listener, err := devserver.ListenLoopback("OpenFGA's HTTP API", port)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	h := &openFGAHTTPServer{
		url: "http://" + listener.Addr().String(), conn: conn,
		server: &http.Server{Handler: mux, ReadTimeout: httpReadTimeout},
	}
	go func() { _ = h.server.Serve(listener) }() // Serve returns only after stopServer.
	return h, nil
}

func (h *openFGAHTTPServer) stopServer() {
	ctx, cancel := context.WithTimeout(context.Background(), httpStopTimeout)
	defer cancel()
	if h.server.Shutdown(ctx) != nil {
		_ = h.server.Close()
	}
	_ = h.conn.Close()
}

// writeOpenFGAError writes an error with OpenFGA's own code in the body.
func writeOpenFGAError(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	code := fgaerrors.ConvertToEncodedErrorCode(status.Convert(err))
	fgahttp.CustomHTTPErrorHandler(ctx, w, r, fgaerrors.NewEncodedError(code, err.Error()))
}
