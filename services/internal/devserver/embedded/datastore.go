package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/openfga/openfga/pkg/encoder"
	"github.com/openfga/openfga/pkg/logger"
	"github.com/openfga/openfga/pkg/server/config"
	"github.com/openfga/openfga/pkg/storage"
	"github.com/openfga/openfga/pkg/storage/memory"
	"github.com/openfga/openfga/pkg/storage/migrate"
	"github.com/openfga/openfga/pkg/storage/sqlcommon"
	"github.com/openfga/openfga/pkg/storage/sqlite"
)

// migration guards the settings of OpenFGA's migration tool, which are global to the process.
//
//nolint:gochecknoglobals // What it guards is global.
var migration sync.Mutex

// makePrivateFile creates a file that only its owner can read, or restricts an existing one.
func makePrivateFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// openDatastore opens the datastore of cfg and returns it with its encoder of page tokens.
func openDatastore(cfg OpenFGAConfig, log logger.Logger) (storage.OpenFGADatastore, encoder.ContinuationTokenSerializer, error) {
	tuples := cmp.Or(cfg.MaxTuples, config.DefaultMaxTuplesPerWrite)
	types := cmp.Or(cfg.MaxTypes, config.DefaultMaxTypesPerAuthorizationModel)
	if cfg.File == "" {
		store := memory.New(memory.WithMaxTuplesPerWrite(tuples), memory.WithMaxTypesPerAuthorizationModel(types))
		return store, encoder.NewStringContinuationTokenSerializer(), nil
	}
	if strings.Contains(cfg.File, "?") {
		return nil, nil, fmt.Errorf("database file %q: a path with a question mark cannot be one", cfg.File)
	}
	if err := os.MkdirAll(filepath.Dir(cfg.File), 0o700); err != nil {
		return nil, nil, fmt.Errorf("creating the directory of database %s: %w", cfg.File, err)
	}
	if err := makePrivateFile(cfg.File); err != nil {
		return nil, nil, fmt.Errorf("protecting database %s: %w", cfg.File, err)
	}
	// Without busy_timeout, SQLite reports an error after 0.1 s if one call deletes a store while others write.
	uri := cfg.File + "?_pragma=busy_timeout(3000)"
	if cfg.UnsafeNoFsync {
		uri += "&_pragma=synchronous(off)"
	}
	migration.Lock()
	defer migration.Unlock()
	if err := migrate.RunMigrations(migrate.MigrationConfig{
		Engine: "sqlite", URI: uri, Timeout: openFGAStopTimeout, PingTimeout: openFGAStopTimeout, Logger: log,
	}); err != nil {
		return nil, nil, fmt.Errorf("preparing database %s: %w", cfg.File, err)
	}
	store, err := sqlite.New(uri, sqlcommon.NewConfig(
		sqlcommon.WithLogger(log), sqlcommon.WithMaxTuplesPerWrite(tuples), sqlcommon.WithMaxTypesPerAuthorizationModel(types)))
	if err != nil {
		return nil, nil, fmt.Errorf("opening database %s: %w", cfg.File, err)
	}
	return store, sqlcommon.NewSQLContinuationTokenSerializer(), nil
}
