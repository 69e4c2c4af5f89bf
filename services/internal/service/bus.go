package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	connectTimeout  = 3 * time.Second
	busDrainTimeout = 4 * time.Second
	// startupPeriod bounds the time in which other processes may still be starting. During this time, waiting for them is
	// logged without a warning.
	startupPeriod = 10 * time.Second
)

// natsConnection is the connection to NATS. It reconnects without a limit. When it is closed permanently, it calls
// lost.
type natsConnection struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	closed chan struct{}
}

// connectNATS waits until NATS answers and all streams exist. The watcher creates the streams, so it waits only for
// NATS.
func connectNATS(ctx context.Context, rt *Runtime, cfg Config, lost func(error)) (*natsConnection, error) {
	b := &natsConnection{closed: make(chan struct{})}
	options, err := b.natsOptions(rt, cfg, lost)
	if err != nil {
		return nil, err
	}
	err = retryUntilDone(ctx, rt.Log, "waiting for NATS", connectBackoff(), func() (err error) {
		b.conn, err = nats.Connect(cfg.NATS.URL, options...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		b.drainAndClose()
		return nil, fmt.Errorf("using JetStream: %w", err)
	}
	if err := b.awaitStreams(ctx, rt); err != nil {
		b.drainAndClose()
		return nil, fmt.Errorf("waiting for streams: %w", err)
	}
	return b, nil
}

// awaitStreams waits until all streams exist. The watcher waits only until it can compare them.
func (b *natsConnection) awaitStreams(ctx context.Context, rt *Runtime) error {
	looks := backoff.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	return retryUntilDone(ctx, rt.Log, "waiting for JetStream", looks, func() error {
		if rt.Name != topology.Watcher {
			return topology.CheckStreams(ctx, b.js)
		}
		_, err := topology.CompareStreams(ctx, b.js, 1)
		return err
	})
}

func (b *natsConnection) natsOptions(rt *Runtime, cfg Config, lost func(error)) ([]nats.Option, error) {
	options, err := cfg.NATS.credentialOptions()
	if err != nil {
		return nil, err
	}
	return append(options,
		nats.Name("entail-"+rt.Name), nats.CustomInboxPrefix(topology.InboxPrefix(rt.Name)),
		nats.Timeout(connectTimeout), nats.DrainTimeout(busDrainTimeout),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings),
		nats.CustomReconnectDelay(connectBackoff().Delay),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil if this process closed the connection
				rt.Log.Warn("connection to NATS lost; reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			rt.Log.Info("connected to NATS again", "server", c.ConnectedServerName())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			rt.Log.Warn("NATS reported an error", "error", err)
		}),
		nats.ClosedHandler(func(c *nats.Conn) {
			lost(errors.Join(errors.New("the connection to NATS is closed for good"), c.LastError()))
			close(b.closed)
		}),
	), nil
}

// credentialOptions returns options that read their files at every connect, so that the files can be replaced.
func (n NATSConfig) credentialOptions() ([]nats.Option, error) {
	var options []nats.Option
	switch {
	case n.CredsFile != "":
		options = append(options, nats.UserCredentials(n.CredsFile))
	case n.NKeyFile != "":
		seed, err := nkeyOption(n.NKeyFile)
		if err != nil {
			return nil, err
		}
		options = append(options, seed)
	case n.User != "":
		options = append(options, nats.UserInfoHandler(func() (string, string) { return n.User, readSecretFile(n.PasswordFile) }))
	case n.TokenFile != "":
		options = append(options, nats.TokenHandler(func() string { return readSecretFile(n.TokenFile) }))
	}
	if n.CAFile != "" {
		options = append(options, nats.RootCAs(n.CAFile))
	}
	return options, nil
}

// readSecretFile returns the content of a file, or "" if it cannot be read. The server then refuses the connection.
func readSecretFile(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// drainAndClose sends the buffered messages and closes the connection. It ignores an unreachable server.
func (b *natsConnection) drainAndClose() {
	if b == nil {
		return
	}
	if err := b.conn.Drain(); err == nil {
		select {
		case <-b.closed:
			return
		case <-time.After(busDrainTimeout):
		}
	}
	b.conn.Close()
	<-b.closed
}

// retryUntilDone calls try until it succeeds, the error is terminal, or ctx ends. It logs each new error once. It logs
// at level info while other processes may still be starting, and later as a warning.
func retryUntilDone(ctx context.Context, log *slog.Logger, description string, delays backoff.Backoff, try func() error) error {
	began, level, said := time.Now(), slog.LevelInfo, ""
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || fault.IsTerminal(err) {
			return err
		}
		if time.Since(began) > startupPeriod && level < slog.LevelWarn {
			level, said = slog.LevelWarn, ""
		}
		if err.Error() != said {
			log.Log(ctx, level, description, "error", err)
			said = err.Error()
		}
		if !backoff.Sleep(ctx, delays.Delay(attempt)) {
			return ctx.Err()
		}
	}
}

// connectBackoff returns the delays between attempts to reach NATS.
func connectBackoff() backoff.Backoff {
	return backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
}
