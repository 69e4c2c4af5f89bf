package service_test

import (
	"context"

	"github.com/entail-dev/entail/services/internal/service"
)

// This is the main function of a service. In the service's own package, Run and its configuration would be exported
// for the program that runs all services in one process.
//
//nolint:testableexamples // It would end the test.
func Example() {
	cfg := service.Defaults()
	build := func(_ context.Context, rt *service.Runtime) (service.App, error) {
		task := func(ctx context.Context) error {
			rt.Log.Info("working")
			<-ctx.Done()
			return nil
		}
		return service.App{Tasks: []func(context.Context) error{task}}, nil
	}
	service.Main("example-sync", cfg.BindFlags, func(ctx context.Context) error {
		return service.Run(ctx, "example-sync", cfg, build)
	})
}
