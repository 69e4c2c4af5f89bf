package publish

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// temporarilyUnavailable is the error code of a NATS server that has lost contact with its cluster.
const temporarilyUnavailable jetstream.ErrorCode = 10008

// IsServerResponse reports whether JetStream itself answered, even with a refusal. Another server or client would then
// get the same answer.
func IsServerResponse(err error) bool {
	if err == nil || errors.Is(err, errContended) || errors.Is(err, ErrNoMessage) || errors.Is(err, ErrMalformed) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode != temporarilyUnavailable && api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled
}
