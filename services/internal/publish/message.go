package publish

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Headers of a change. They repeat what a sweep compares, so that it reads no bodies.
const (
	// HeaderSchema holds the version of the wire format.
	HeaderSchema = "Entail-Schema"
	// HeaderEpoch holds the epoch of the change.
	HeaderEpoch = "Entail-Epoch"
	// HeaderUID holds the UID of the object.
	HeaderUID = "Entail-Uid"
	// HeaderVersion holds the resourceVersion of the object.
	HeaderVersion = "Entail-Resource-Version"
	// HeaderOperation holds "upsert" or "delete".
	HeaderOperation = "Entail-Operation"
	// HeaderMeaning holds [Options.ContentHash].
	HeaderMeaning = "Entail-Meaning"

	headerContentType = "Content-Type"
	headerTraceparent = "traceparent"
)

const (
	schema      = "1"
	contentType = "application/protobuf"
	upsert      = "upsert"
	deleted     = "delete"
	// overhead bounds the size of all headers. The server counts them, too.
	overhead = 4 << 10
)

// Entry describes a stored message by its headers. For a message of another author only Sequence is set.
type Entry struct {
	Key      event.Key
	Sequence uint64
	Epoch    string
	// UID is empty in messages of earlier releases.
	UID string
	// Version is the resourceVersion of the object.
	Version     string
	Deleted     bool
	ContentHash string
}

// Change returns the fields that [event.Change.IsNewerThan] compares.
func (h Entry) Change() event.Change {
	return event.Change{Key: h.Key, Epoch: h.Epoch, UID: h.UID, ResourceVersion: h.Version, Deleted: h.Deleted}
}

func headOf(key event.Key, sequence uint64, header nats.Header) Entry {
	return Entry{
		Key: key, Sequence: sequence, Epoch: header.Get(HeaderEpoch), UID: header.Get(HeaderUID), Version: header.Get(HeaderVersion),
		Deleted: header.Get(HeaderOperation) == deleted, ContentHash: header.Get(HeaderMeaning),
	}
}

// encodeMessage encodes c. It omits the object if the message would be larger than the server accepts.
func (p *Publisher) encodeMessage(subject string, c event.Change, opts Options) (*nats.Msg, error) {
	data, err := c.Marshal()
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > p.js.Conn().MaxPayload()-overhead {
		c.Object, c.Omitted = nil, true
		if data, err = c.Marshal(); err != nil {
			return nil, err
		}
	}
	msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	msg.Header.Set(headerContentType, contentType)
	msg.Header.Set(HeaderSchema, schema)
	msg.Header.Set(HeaderEpoch, c.Epoch)
	msg.Header.Set(HeaderUID, c.UID)
	msg.Header.Set(HeaderVersion, c.ResourceVersion)
	msg.Header.Set(HeaderOperation, operationOf(c))
	if opts.ContentHash != "" {
		msg.Header.Set(HeaderMeaning, opts.ContentHash)
	}
	if c.Traceparent != "" {
		msg.Header.Set(headerTraceparent, c.Traceparent)
	}
	if opts.Replay {
		msg.Header.Set(topology.ReplayHeader, time.Now().UTC().Format(time.RFC3339Nano))
	}
	return msg, nil
}

func operationOf(c event.Change) string {
	if c.Deleted {
		return deleted
	}
	return upsert
}

func publishConditions(c event.Change, id string, expected uint64, opts Options) []jetstream.PublishOpt {
	conditions := []jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithExpectLastSequencePerSubject(expected)}
	if c.Deleted {
		conditions = append(conditions, jetstream.WithMsgTTL(opts.timeToLive()))
	}
	return conditions
}
