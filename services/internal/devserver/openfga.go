package devserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// OpenFGAConfig configures bin/openfga.
type OpenFGAConfig struct {
	// File is a SQLite database, which is created if it is missing. A power failure can destroy it, because the server
	// does not wait for the disk.
	File string
	// Port is the port of the gRPC API. With 0, a free port is used.
	Port int
}

// StartOpenFGA starts OpenFGA with its gRPC API, and returns when it accepts connections.
func StartOpenFGA(ctx context.Context, cfg OpenFGAConfig) (*ServerProcess, error) {
	binary, err := FindProgram("openfga")
	if err != nil {
		return nil, err
	}
	// Without busy_timeout, OpenFGA reports an error if one call deletes a store while another call writes.
	storage := []string{"--datastore-engine", "sqlite", "--datastore-uri", cfg.File + "?_pragma=busy_timeout(3000)&_pragma=synchronous(off)"}
	if err := migrateDatabase(ctx, binary, cfg.File, storage); err != nil {
		return nil, err
	}
	p := serverProgram{name: "OpenFGA", port: cfg.Port}
	p.command = func(port int) (*exec.Cmd, error) {
		return exec.Command(binary, append([]string{
			"run", "--grpc-addr", LoopbackAddress(port), "--http-enabled=false", "--playground-enabled=false",
			"--metrics-enabled=false", "--log-level", "warn",
		}, storage...)...), nil
	}
	p.ready = func(ctx context.Context, port int) error {
		conn, err := dialLocal(ctx, port)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return p.startServer(ctx)
}

// migrateDatabase creates the database if it is missing.
func migrateDatabase(ctx context.Context, binary, file string, storage []string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makePrivateDir(filepath.Dir(file)); err != nil {
		return fmt.Errorf("starting OpenFGA: %w", err)
	}
	out, err := exec.CommandContext(ctx, binary, append([]string{"migrate", "--log-level", "warn"}, storage...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("starting OpenFGA: making database %s: %w\n%s", file, err, out)
	}
	return nil
}
