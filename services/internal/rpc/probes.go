package rpc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// mountProbes adds the endpoints without authentication: liveness, readiness, metrics, and gRPC health and reflection.
func (s *Server) mountProbes(metrics *prometheus.Registry) {
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeProbeResponse(w, nil) })
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeProbeResponse(w, s.checkReadiness()) })
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorLog: s.http.ErrorLog}))
	// Health and reflection need no authentication, because their content is public.
	public := []connect.HandlerOption{connect.WithReadMaxBytes(maxBody), boundedGzip(), connect.WithInterceptors(s.chain.edge)}
	s.mux.Handle(grpchealth.NewHandler(healthChecker{s}, public...))
	reflector := grpcreflect.NewReflector(grpcreflect.NamerFunc(s.serviceNames))
	s.mux.Handle(grpcreflect.NewHandlerV1(reflector, public...))
	s.mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, public...))
}

func (s *Server) checkReadiness() error {
	if s.ready == nil {
		return nil
	}
	return s.ready()
}

func (s *Server) serviceNames() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]string{grpchealth.HealthV1ServiceName}, s.services...)
}

func writeProbeResponse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "ok")
}

// healthChecker implements gRPC health. The result is the same for the empty name and for each service.
type healthChecker struct{ server *Server }

func (h healthChecker) Check(_ context.Context, request *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if request.Service != "" && !slices.Contains(h.server.serviceNames(), request.Service) {
		return nil, NotFoundError("service %.200q is not served here", request.Service)
	}
	status := grpchealth.StatusNotServing
	if ready := h.server.checkReadiness() == nil; ready {
		status = grpchealth.StatusServing
	}
	return &grpchealth.CheckResponse{Status: status}, nil
}

// requireLoopbackHost refuses requests with another host name than loopback. It protects a server without
// authentication from web pages, which can make a browser call the server under the page's own host name.
func requireLoopbackHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this server has no authentication, so it answers to loopback names only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
