package embedded

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/crypto/bcrypt"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/permission"
)

const natsReadyTimeout = 30 * time.Second

// NATSConfig says how to run NATS.
type NATSConfig struct {
	// Dir keeps the streams.
	Dir string
	// Port to listen on; 0 takes a free one.
	Port int
	// Password of every user, random when empty. Each has its own rights all the same, so that a missing
	// one shows at once.
	Password string
	// Log receives what the server has to say; nil drops it.
	Log *slog.Logger
}

// NATS is a running NATS server with JetStream.
type NATS struct {
	server   *server.Server
	port     int
	password string
}

// StartNATS starts NATS and waits until it takes connections.
func StartNATS(cfg NATSConfig) (*NATS, error) {
	cfg.Password = cmp.Or(cfg.Password, rand.Text())
	port := cfg.Port
	if port == 0 {
		var err error
		if port, err = devserver.FreePort(); err != nil {
			return nil, err
		}
	}
	options := &server.Options{
		ServerName: "entail", Host: devserver.Loopback, Port: port, MaxPayload: devserver.MaxPayload,
		JetStream: true, StoreDir: cfg.Dir, DisableJetStreamBanner: true, NoSigs: true,
	}
	if err := configure(options, cfg.Password); err != nil {
		return nil, fmt.Errorf("configuring NATS: %w", err)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("configuring NATS: %w", err)
	}
	log := &natsLog{log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))}
	s.SetLogger(log, false, false)
	s.Start()
	n := &NATS{server: s, password: cfg.Password}
	if err := n.ready(log, cfg.Port); err != nil {
		n.Stop()
		return nil, fmt.Errorf("starting NATS in %s: %w", cfg.Dir, err)
	}
	n.port = devserver.PortOf(s.Addr())
	return n, nil
}

// configure adds what is shipped, with a password for every variable in it.
func configure(options *server.Options, password string) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return err
	}
	config, err := permission.ConfigWith(string(hash))
	if err != nil {
		return err
	}
	return options.ProcessConfigString(string(config))
}

func (n *NATS) ready(log *natsLog, port int) error {
	err := log.fatal()
	if err == nil {
		if n.server.ReadyForConnections(natsReadyTimeout) {
			return nil
		}
		err = fmt.Errorf("not ready after %s", natsReadyTimeout)
	}
	// The server's own error is text; asking for the port again gives a real one.
	if port != 0 && n.server.Addr() == nil {
		listener, listenErr := devserver.Listen("NATS", port)
		if listenErr != nil {
			return listenErr
		}
		err = errors.Join(err, listener.Close())
	}
	return err
}

// URL is where a user of package permission connects.
func (n *NATS) URL(user string) string {
	return (&url.URL{Scheme: "nats", User: url.UserPassword(user, n.password), Host: devserver.Address(n.port)}).String()
}

// Port is what the server listens on.
func (n *NATS) Port() int { return n.port }

// Stop ends the server. Streams stay on disk.
func (n *NATS) Stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

// natsLog hands the server's words on, and keeps the first fatal ones.
type natsLog struct {
	log   *slog.Logger
	mu    sync.Mutex
	first error
}

func (l *natsLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// Fatalf is how the server gives up.
func (l *natsLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = fmt.Errorf(format, v...)
	}
}

// Errorf is an error.
func (l *natsLog) Errorf(format string, v ...any) {
	l.log.Error("nats", "text", fmt.Sprintf(format, v...))
}

// Warnf is a warning.
func (l *natsLog) Warnf(format string, v ...any) {
	l.log.Warn("nats", "text", fmt.Sprintf(format, v...))
}

// Noticef is what the server does.
func (l *natsLog) Noticef(format string, v ...any) {
	l.log.Debug("nats", "text", fmt.Sprintf(format, v...))
}

// Debugf is never called: debugging is off.
func (*natsLog) Debugf(string, ...any) {}

// Tracef is never called: tracing is off.
func (*natsLog) Tracef(string, ...any) {}
