package rpc

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files are a certificate and its key in PEM form. They are read again when they change.
type Files struct {
	Certificate, Key string
}

func (f Files) config(log *slog.Logger) (*tls.Config, error) {
	c := &certificate{files: f, log: log}
	if err := c.reload(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

// certificate is looked up at every handshake, which costs two stats. While the files do
// not fit together, as in the middle of a change, the last good pair stays in use.
type certificate struct {
	files Files
	log   *slog.Logger

	mu    sync.Mutex
	stamp [2]time.Time
	pair  *tls.Certificate
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reload(); err != nil {
		c.log.Warn("certificate not replaced; the one before stays in use", "error", err)
	}
	return c.pair, nil
}

// reload reads the files when they changed since it last tried. It stats them first, so
// that a change in between is seen the next time.
func (c *certificate) reload() error {
	var stamp [2]time.Time
	for i, name := range []string{c.files.Certificate, c.files.Key} {
		if info, err := os.Stat(name); err == nil {
			stamp[i] = info.ModTime()
		}
	}
	if stamp == c.stamp && c.pair != nil {
		return nil
	}
	c.stamp = stamp
	pair, err := tls.LoadX509KeyPair(c.files.Certificate, c.files.Key)
	if err != nil {
		return fmt.Errorf("reading TLS certificate %s and key %s: %w", c.files.Certificate, c.files.Key, err)
	}
	c.pair = &pair
	return nil
}
