package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
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
	ensureTimeout   = 15 * time.Second
	busDrainTimeout = 4 * time.Second
)

// bus is the connection to NATS. It comes back by itself, for ever; should it be closed
// for good, lost is told.
type bus struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	closed chan struct{}
}

// joinBus waits until NATS answers and every stream exists.
func joinBus(ctx context.Context, rt *Runtime, cfg Config, lost func(error)) (*bus, error) {
	b := &bus{closed: make(chan struct{})}
	options, err := b.options(rt, cfg, lost)
	if err != nil {
		return nil, err
	}
	err = insist(ctx, rt.Log, "waiting for NATS", func() (err error) {
		b.conn, err = nats.Connect(cfg.NATS.URL, options...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		b.leave()
		return nil, fmt.Errorf("using JetStream: %w", err)
	}
	err = insist(ctx, rt.Log, "waiting for JetStream", func() error {
		ctx, cancel := context.WithTimeout(ctx, ensureTimeout)
		defer cancel()
		return refusal(topology.Ensure(ctx, b.js, cfg.StreamReplicas))
	})
	if err != nil {
		b.leave()
		return nil, fmt.Errorf("preparing streams: %w", err)
	}
	return b, nil
}

func (b *bus) options(rt *Runtime, cfg Config, lost func(error)) ([]nats.Option, error) {
	options, err := cfg.NATS.credentials()
	if err != nil {
		return nil, err
	}
	options = append(options,
		nats.Name("entail-"+rt.Name), nats.Timeout(connectTimeout), nats.DrainTimeout(busDrainTimeout),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings),
		nats.CustomReconnectDelay(retries().Delay),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // Nil when we closed it.
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
	)
	return append(options, cfg.Embed.NATS...), nil
}

// credentials reads files at every connect, so that they can be replaced.
func (n NATS) credentials() ([]nats.Option, error) {
	var options []nats.Option
	switch {
	case n.CredsFile != "":
		options = append(options, nats.UserCredentials(n.CredsFile))
	case n.NKeyFile != "":
		seed, err := nkey(n.NKeyFile)
		if err != nil {
			return nil, err
		}
		options = append(options, seed)
	case n.User != "":
		options = append(options, nats.UserInfoHandler(func() (string, string) { return n.User, secret(n.PasswordFile) }))
	case n.TokenFile != "":
		options = append(options, nats.TokenHandler(func() string { return secret(n.TokenFile) }))
	}
	if n.CAFile != "" {
		options = append(options, nats.RootCAs(n.CAFile))
	}
	return options, nil
}

// secret is empty when the file cannot be read; the server then says what it thinks of that.
func secret(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// leave sends what is still to be sent, and closes. A server that is away or silent gets nothing,
// and is no reason to fail.
func (b *bus) leave() {
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

// Codes by which JetStream refuses a stream for a reason that waiting does not change.
const (
	invalidConfig      jetstream.ErrorCode = 10052
	nameInUse          jetstream.ErrorCode = 10058
	subjectsOverlap    jetstream.ErrorCode = 10065
	replicasImpossible jetstream.ErrorCode = 10074
)

// refusal marks what needs a person.
func refusal(err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok || !slices.Contains([]jetstream.ErrorCode{invalidConfig, nameInUse, subjectsOverlap, replicasImpossible}, api.ErrorCode) {
		return err
	}
	if api.ErrorCode == replicasImpossible {
		err = fmt.Errorf("use --stream-replicas=1 or a cluster of NATS servers: %w", err)
	}
	return fault.Terminal(err)
}

// insist tries until it works, the error is terminal, or ctx ends.
func insist(ctx context.Context, log *slog.Logger, doing string, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || fault.IsTerminal(err) {
			return err
		}
		delay := retries().Delay(attempt)
		log.Warn(doing, "attempt", attempt, "next", delay, "error", err)
		if !backoff.Sleep(ctx, delay) {
			return ctx.Err()
		}
	}
}

// retries is how the bus is tried again.
func retries() backoff.Backoff {
	return backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
}
