package publish

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// temporarilyUnavailable is the answer of a server that has lost the others of its cluster.
const temporarilyUnavailable jetstream.ErrorCode = 10008

// Answered reports whether JetStream itself has spoken, be it to refuse: then another server, or
// another client, would not fare better.
func Answered(err error) bool {
	if err == nil || errors.Is(err, errContended) || errors.Is(err, ErrNone) || errors.Is(err, ErrMalformed) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode != temporarilyUnavailable && api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled
}
