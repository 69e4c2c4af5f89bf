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
	// pingInterval and maxPings bound how long a connection may be silent. A failed machine on the network path sends
	// nothing, so pings are needed.
	pingInterval = 2 * time.Second
	maxPings     = 2
	// pulseInterval is the time between two requests to JetStream. pulseTimeout bounds one request.
	pulseInterval = time.Second
	pulseTimeout  = 2 * time.Second
	// maxSilence bounds the time without an answer before the service connects to another server. reconnectTimeout is
	// the time in which that server must answer.
	maxSilence       = 5 * time.Second
	reconnectTimeout = pulseInterval + pulseTimeout
	// clusterUnavailable is the error code of a JetStream server without a cluster leader.
	clusterUnavailable jetstream.ErrorCode = 10008
)

// jetStreamProbe checks whether JetStream answers. A NATS server that has lost contact with its cluster may answer
// pings, but it acknowledges no message.
type jetStreamProbe struct {
	conn *nats.Conn
	js   jetstream.JetStream
	// service is the name of the service that owns the connection.
	service string
	log     *slog.Logger
	// heard is the time of the last answer, in nanoseconds since begun.
	heard atomic.Int64
	begun time.Time
}

// Run checks JetStream until ctx ends.
func (p *jetStreamProbe) Run(ctx context.Context) error {
	tried, reconnects := time.Duration(0), p.conn.Stats().Reconnects
	for backoff.Sleep(ctx, pulseInterval) {
		if p.isJetStreamAnswering(ctx) {
			p.heard.Store(int64(time.Since(p.begun)))
			continue
		}
		now := time.Since(p.begun)
		if n := p.conn.Stats().Reconnects; n != reconnects { // A missed ping also causes a reconnect.
			reconnects, tried = n, now
		}
		if ctx.Err() == nil && p.timeSinceAnswer() > maxSilence && now-tried > reconnectTimeout && p.conn.IsConnected() {
			tried = now
			p.log.WarnContext(ctx, "JetStream is silent; trying another server", "server", p.conn.ConnectedServerName(), "for", p.timeSinceAnswer())
			if err := p.conn.ForceReconnect(); err != nil {
				p.log.WarnContext(ctx, "no other server tried", "error", err)
			}
		}
	}
	return nil
}

// isJetStreamAnswering reports whether JetStream answers, even with a refusal. It publishes a message, because a
// server that has lost contact with its cluster still answers reads.
func (p *jetStreamProbe) isJetStreamAnswering(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	_, err := p.js.Publish(ctx, topology.ProbeSubject(p.service), nil)
	if errors.Is(err, jetstream.ErrNoStreamResponse) { // The stream may not exist.
		_, err = p.js.Stream(ctx, topology.Changes)
		return errors.Is(err, jetstream.ErrStreamNotFound)
	}
	refusal, refused := errors.AsType[*jetstream.APIError](err)
	return err == nil || refused && refusal.ErrorCode != clusterUnavailable
}

// timeSinceAnswer returns the time since the last answer.
func (p *jetStreamProbe) timeSinceAnswer() time.Duration {
	return time.Since(p.begun) - time.Duration(p.heard.Load())
}

// readinessCheck returns the readiness check for JetStream.
func (p *jetStreamProbe) readinessCheck() ReadinessCheck {
	return ReadinessCheck{Name: "jetstream", Err: func() error {
		if d := p.timeSinceAnswer(); d > maxSilence {
			return fmt.Errorf("has not answered for %s", d.Round(time.Second))
		}
		return nil
	}}
}
