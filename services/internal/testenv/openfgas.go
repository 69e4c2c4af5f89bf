package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/entail-dev/entail/services/internal/devserver"
)

// openFGAs holds the OpenFGA servers of this binary, so that not every test has to start one.
//
//nolint:gochecknoglobals // Tests of one binary have nothing else in common.
var openFGAs openFGAPool

// openFGAPool holds the servers that no test uses. It holds more than one only after tests ran in parallel or a test
// used two servers.
type openFGAPool struct {
	mu   sync.Mutex
	idle []*openFGAProcess
}

// takeServer returns a running server without stores. No other test uses the server until putServer.
func (p *openFGAPool) takeServer(ctx context.Context) (*openFGAProcess, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		o := p.idle[last]
		p.idle = p.idle[:last]
		return o, nil
	}
	dir, err := os.MkdirTemp("", "entail-openfga-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for OpenFGA: %w", err)
	}
	o := &openFGAProcess{cfg: devserver.OpenFGAConfig{File: filepath.Join(dir, "openfga.db")}}
	if err := o.startServer(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return o, nil
}

// putServer deletes all stores of a server and keeps the server for another test. It discards a server that fails.
func (p *openFGAPool) putServer(ctx context.Context, o *openFGAProcess) error {
	err := o.startServer(ctx)
	if err == nil {
		err = o.deleteStores(ctx)
	}
	if err != nil {
		return errors.Join(err, o.endServer())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, o)
	return nil
}

// endServers stops all servers and removes their directories.
func (p *openFGAPool) endServers() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.idle {
		err = errors.Join(err, o.endServer())
	}
	p.idle = nil
	return err
}

// openFGAProcess is one server with its own database directory.
type openFGAProcess struct {
	cfg devserver.OpenFGAConfig
	// server is nil while the server is stopped.
	server *devserver.ServerProcess
}

func (o *openFGAProcess) storageDir() string { return filepath.Dir(o.cfg.File) }

// startServer starts the server unless it is running. A restart keeps the port.
func (o *openFGAProcess) startServer(ctx context.Context) error {
	if o.server != nil {
		return nil
	}
	server, err := devserver.StartOpenFGA(ctx, o.cfg)
	if err != nil {
		return err
	}
	o.server, o.cfg.Port = server, server.Port()
	return nil
}

// stopServer stops the server unless it is stopped.
func (o *openFGAProcess) stopServer() error {
	if o.server == nil {
		return nil
	}
	err := o.server.Stop()
	o.server = nil
	return err
}

// endServer stops the server and removes its directory.
func (o *openFGAProcess) endServer() error {
	return errors.Join(o.stopServer(), os.RemoveAll(o.storageDir()))
}

func (o *openFGAProcess) serverLog() string {
	if o.server == nil {
		return "(it is stopped)"
	}
	return o.server.LogTail()
}

// deleteStores deletes all stores.
func (o *openFGAProcess) deleteStores(ctx context.Context) (err error) {
	conn, err := grpc.NewClient(devserver.LoopbackAddress(o.cfg.Port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("deleting stores: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	client := openfgav1.NewOpenFGAServiceClient(conn)
	for {
		list, err := client.ListStores(ctx, &openfgav1.ListStoresRequest{})
		if err != nil {
			return fmt.Errorf("listing stores: %w", err)
		}
		if len(list.GetStores()) == 0 {
			return nil
		}
		for _, store := range list.GetStores() {
			if _, err := client.DeleteStore(ctx, &openfgav1.DeleteStoreRequest{StoreId: store.GetId()}); err != nil {
				return fmt.Errorf("deleting store %s: %w", store.GetName(), err)
			}
		}
	}
}
