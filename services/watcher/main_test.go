package watcher_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

// asWatcher makes this test binary a watcher, so that a test can kill one.
const asWatcher = "ENTAIL_TEST_AS_WATCHER"

func TestMain(m *testing.M) {
	if os.Getenv(asWatcher) != "" {
		cfg := watcher.Defaults()
		service.Main(topology.Watcher, cfg.BindFlags, func(ctx context.Context) error { return watcher.Run(ctx, cfg) })
	}
	service.CaptureLogs(slog.New(slog.DiscardHandler))
	testbed.Main(m)
}
