package watcher_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher"
)

func TestMain(m *testing.M) {
	if testenv.PrepareIfSpawned() {
		cfg := watcher.Defaults()
		service.Main(topology.Watcher, cfg.BindFlags, func(ctx context.Context) error { return watcher.Run(ctx, cfg) })
	}
	service.CaptureLibraryLogs(slog.New(slog.DiscardHandler))
	testenv.Main(m)
}
