package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	// pingInterval and maxPings bound how long a connection may be silent: a machine on the path that
	// dies tells nobody.
	pingInterval = 2 * time.Second
	maxPings     = 2
	// pulseInterval is how often JetStream is asked for a sign of life, pulseTimeout how long it may take.
	pulseInterval = time.Second
	pulseTimeout  = 2 * time.Second
	// silence is how long JetStream may give none before another server is tried, probation how long that
	// one may.
	silence   = 5 * time.Second
	probation = pulseInterval + pulseTimeout
	// clusterUnavailable is what a server says that does not know the others' leader.
	clusterUnavailable jetstream.ErrorCode = 10008
)

// pulse tells whether JetStream answers. A server may answer pings and yet have lost the others of
// its cluster: then nothing that is published through it is ever acknowledged.
type pulse struct {
	conn *nats.Conn
	js   jetstream.JetStream
	// service is whose connection it is.
	service string
	log     *slog.Logger
	// heard is when JetStream last answered, in nanoseconds since begun.
	heard atomic.Int64
	begun time.Time
}

func newPulse(conn *nats.Conn, js jetstream.JetStream, service string, log *slog.Logger) *pulse {
	return &pulse{conn: conn, js: js, service: service, log: log, begun: time.Now()}
}

// Run asks until ctx ends.
func (p *pulse) Run(ctx context.Context) error {
	tried, reconnects := time.Duration(0), p.conn.Stats().Reconnects
	for backoff.Sleep(ctx, pulseInterval) {
		if p.ask(ctx) {
			p.heard.Store(int64(time.Since(p.begun)))
			continue
		}
		now := time.Since(p.begun)
		if n := p.conn.Stats().Reconnects; n != reconnects { // Also when a ping was not answered.
			reconnects, tried = n, now
		}
		if ctx.Err() == nil && p.silent() > silence && now-tried > probation && p.conn.IsConnected() {
			tried = now
			p.log.WarnContext(ctx, "JetStream is silent; trying another server", "server", p.conn.ConnectedServerName(), "for", p.silent())
			if err := p.conn.ForceReconnect(); err != nil {
				p.log.WarnContext(ctx, "no other server tried", "error", err)
			}
		}
	}
	return nil
}

// ask reports whether JetStream answers, whatever it says. It publishes: a server that has lost the
// others goes on telling what it knows, but acknowledges nothing.
func (p *pulse) ask(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	_, err := p.js.Publish(ctx, topology.BarrierSubject(p.service), nil)
	if errors.Is(err, jetstream.ErrNoStreamResponse) { // Perhaps there is no such stream.
		_, err = p.js.Stream(ctx, topology.Changes)
		return errors.Is(err, jetstream.ErrStreamNotFound)
	}
	refusal, refused := errors.AsType[*jetstream.APIError](err)
	return err == nil || refused && refusal.ErrorCode != clusterUnavailable
}

// silent is for how long JetStream has not answered.
func (p *pulse) silent() time.Duration {
	return time.Since(p.begun) - time.Duration(p.heard.Load())
}

// check is the readiness that comes of it.
func (p *pulse) check() Check {
	return Check{Name: "jetstream", Err: func() error {
		if d := p.silent(); d > silence {
			return fmt.Errorf("has not answered for %s", d.Round(time.Second))
		}
		return nil
	}}
}
