package system

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
)

// startOpenFGA starts OpenFGA with its own database.
func (s *System) startOpenFGA(ctx context.Context) error {
	database := filepath.Join(s.cfg.Dir, "openfga.sqlite") + "?_pragma=synchronous(off)"
	storage := []string{"--datastore-engine", "sqlite", "--datastore-uri", database}
	migrate := exec.CommandContext(ctx, s.binaryPath("openfga"), append([]string{"migrate"}, storage...)...)
	if out, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("preparing the database of OpenFGA: %w\n%s", err, out)
	}
	s.OpenFGA = s.newProcess("openfga", s.binaryPath("openfga"), append([]string{
		"run", "--grpc-addr", loopbackAddress(s.ports.openFGA), "--http-enabled=false", "--playground-enabled=false",
		"--metrics-enabled", "--metrics-addr", loopbackAddress(s.ports.openFGAMetrics), "--log-level", "warn",
	}, storage...)...)
	if err := s.OpenFGA.Start(); err != nil {
		return err
	}
	return pollUntil(ctx, func(ctx context.Context) error {
		_, err := httpGet(ctx, s.OpenFGAMetrics())
		return err
	})
}

// OpenFGATarget returns the gRPC address of OpenFGA, past every proxy.
func (s *System) OpenFGATarget() string { return loopbackAddress(s.ports.openFGA) }

// OpenFGAMetrics returns the URL of OpenFGA's metrics, which count the calls of each method.
func (s *System) OpenFGAMetrics() string {
	return "http://" + loopbackAddress(s.ports.openFGAMetrics) + "/metrics"
}

// httpGet returns the body of a response. Any status but 200 is an error.
func httpGet(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", url, response.Status)
	}
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
