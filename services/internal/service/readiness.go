package service

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// readiness has three states in this order: starting, ready while all checks hold, stopping.
type readiness struct {
	checks   atomic.Pointer[[]ReadinessCheck]
	stopping atomic.Bool
}

var (
	errStarting = errors.New("starting: waiting for NATS")
	errStopping = errors.New("stopping")
)

// Err returns nil while the service accepts traffic. Otherwise the error names every check that fails.
func (r *readiness) Err() error {
	checks := r.checks.Load()
	switch {
	case r.stopping.Load():
		return errStopping
	case checks == nil:
		return errStarting
	}
	var errs []error
	for _, check := range *checks {
		if err := check.Err(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", check.Name, err))
		}
	}
	return errors.Join(errs...)
}

func newNATSConnectedCheck(conn *nats.Conn) ReadinessCheck {
	return ReadinessCheck{Name: "nats", Err: func() error {
		if !conn.IsConnected() {
			return errors.New("not connected")
		}
		return nil
	}}
}
