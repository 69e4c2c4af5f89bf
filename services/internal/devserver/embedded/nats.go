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
	"github.com/entail-dev/entail/services/internal/natsauth"
)

const natsReadyTimeout = 30 * time.Second

// NATSConfig configures NATS.
type NATSConfig struct {
	// Dir holds the streams.
	Dir string
	// Port is the port to listen on. With 0, a free port is used.
	Port int
	// Password is the password of all users; if it is empty, a random one is used. Each user has only its own rights,
	// so a missing right causes an error here too.
	Password string
	// Log receives the server's log. Nil drops it.
	Log *slog.Logger
}

// NATSServer is a running NATS server with JetStream.
type NATSServer struct {
	server   *server.Server
	port     int
	password string
}

// StartNATS starts NATS and returns when it accepts connections.
func StartNATS(cfg NATSConfig) (*NATSServer, error) {
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
	if err := applyShippedConfig(options, cfg.Password); err != nil {
		return nil, fmt.Errorf("configuring NATS: %w", err)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("configuring NATS: %w", err)
	}
	log := &natsLog{log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))}
	s.SetLogger(log, false, false)
	s.Start()
	n := &NATSServer{server: s, password: cfg.Password}
	if err := n.waitReady(log, cfg.Port); err != nil {
		n.Stop()
		return nil, fmt.Errorf("starting NATS in %s: %w", cfg.Dir, err)
	}
	n.port = devserver.PortOf(s.Addr())
	return n, nil
}

// applyShippedConfig adds the shipped configuration with the password of all users.
func applyShippedConfig(options *server.Options, password string) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return err
	}
	config, err := natsauth.ServerConfigWithPassword(string(hash))
	if err != nil {
		return err
	}
	return options.ProcessConfigString(string(config))
}

func (n *NATSServer) waitReady(log *natsLog, port int) error {
	err := log.firstFatalError()
	if err == nil {
		if n.server.ReadyForConnections(natsReadyTimeout) {
			return nil
		}
		err = fmt.Errorf("not ready after %s", natsReadyTimeout)
	}
	// The server's own error is only text. Listening on the port again returns a typed error.
	if port != 0 && n.server.Addr() == nil {
		listener, listenErr := devserver.ListenLoopback("NATS", port)
		if listenErr != nil {
			return listenErr
		}
		err = errors.Join(err, listener.Close())
	}
	return err
}

// URL returns the address at which a user of package natsauth connects.
func (n *NATSServer) URL(user string) string {
	return (&url.URL{Scheme: "nats", User: url.UserPassword(user, n.password), Host: devserver.LoopbackAddress(n.port)}).String()
}

// Port returns the port that the server listens on.
func (n *NATSServer) Port() int { return n.port }

// Stop ends the server. Streams stay on disk.
func (n *NATSServer) Stop() {
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

// natsLog passes the server's log to slog and keeps its first fatal error.
type natsLog struct {
	log   *slog.Logger
	mu    sync.Mutex
	first error
}

func (l *natsLog) firstFatalError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// Fatalf records an error after which the server cannot start.
func (l *natsLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = fmt.Errorf(format, v...)
	}
}

// Errorf logs an error.
func (l *natsLog) Errorf(format string, v ...any) {
	l.log.Error("nats", "text", fmt.Sprintf(format, v...))
}

// Warnf logs a warning.
func (l *natsLog) Warnf(format string, v ...any) {
	l.log.Warn("nats", "text", fmt.Sprintf(format, v...))
}

// Noticef logs a notice at debug level.
func (l *natsLog) Noticef(format string, v ...any) {
	l.log.Debug("nats", "text", fmt.Sprintf(format, v...))
}

// Debugf does nothing, because debug logs are off.
func (*natsLog) Debugf(string, ...any) {}

// Tracef does nothing, because trace logs are off.
func (*natsLog) Tracef(string, ...any) {}
