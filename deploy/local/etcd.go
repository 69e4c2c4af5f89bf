package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/entail-dev/entail/deploy/local/internal/options"
)

// etcdServer is the etcd of this process. Whoever reaches etcd is above all
// authorization, so it listens on a unix socket in a directory that only the
// user who runs it may enter.
type etcdServer struct {
	endpoint string
	etcd     *embed.Etcd
	tempDir  string
}

// maxSocketPath is what the smallest of the supported systems allows.
const maxSocketPath = 100

func startEtcd(ctx context.Context, dir string, opts options.Options) (*etcdServer, error) {
	s := &etcdServer{}
	socket, err := s.prepareSocket(dir)
	if err != nil {
		return nil, err
	}
	s.endpoint = socket.String()
	if err := s.startAndWait(ctx, etcdConfig(dir, socket, opts)); err != nil {
		s.close()
		return nil, fmt.Errorf("starting etcd in %s: %w", dir, err)
	}
	return s, nil
}

// prepareSocket is in the directory of the data, or in a temporary one when that
// name is too long for a socket.
func (s *etcdServer) prepareSocket(dir string) (url.URL, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return url.URL{}, fmt.Errorf("creating directory of etcd: %w", err)
	}
	const name = "client.sock"
	if len(filepath.Join(dir, name)) > maxSocketPath {
		var err error
		if dir, err = os.MkdirTemp("", "kube-local-"); err != nil {
			return url.URL{}, fmt.Errorf("creating directory of the etcd socket: %w", err)
		}
		s.tempDir = dir
	}
	return url.URL{Scheme: "unix", Path: filepath.Join(dir, name)}, nil
}

func (s *etcdServer) startAndWait(ctx context.Context, config *embed.Config) (err error) {
	if s.etcd, err = embed.StartEtcd(config); err != nil {
		return err
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err = <-s.etcd.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close gives up on clients that do not go away: etcd survives a kill, so it
// survives the end of the process too.
func (s *etcdServer) close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if s.etcd != nil {
			s.etcd.Close()
		}
	}()
	select {
	case <-closed:
	case <-time.After(stopTimeout):
	}
	if s.tempDir != "" {
		_ = os.RemoveAll(s.tempDir)
	}
}

// etcdConfig is a cluster of one member. Without peers there is nobody to
// listen for, to wait for in an election or to keep old entries for.
func etcdConfig(dir string, client url.URL, opts options.Options) *embed.Config {
	const name = "kube-local"
	nobody := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config := embed.NewConfig()
	config.Name = name
	config.Dir = dir
	config.ListenClientUrls = []url.URL{client}
	config.AdvertiseClientUrls = []url.URL{nobody}
	config.ListenPeerUrls = nil
	config.AdvertisePeerUrls = []url.URL{nobody}
	config.InitialCluster = name + "=" + nobody.String()
	config.TickMs = 20
	config.ElectionMs = 200
	config.SnapshotCatchUpEntries = 100
	config.QuotaBackendBytes = 8 << 30
	config.EnableGRPCGateway = false
	config.UnsafeNoFsync = opts.UnsafeNoFsync
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	config.LogLevel = "warn"
	config.LogOutputs = []string{opts.LogFile}
	return config
}
