package publish

import (
	"cmp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// These headers of a change are used beside those of package topology.
const (
	// HeaderSchema holds the version of the wire format.
	HeaderSchema = "Entail-Schema"
	// HeaderContentHash holds [PublicationOptions.ContentHash].
	HeaderContentHash = "Entail-Meaning"

	headerContentType = "Content-Type"
	headerTraceparent = "traceparent"
)

const (
	schema      = "1"
	contentType = "application/protobuf"
	// maxHeaderBytes bounds the size of all headers. The server counts them as part of the message.
	maxHeaderBytes = 4 << 10
)

// Entry describes a stored message by its headers. If another client wrote the message without these headers, only Key
// and Sequence are set.
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

// Change returns a change with the fields that [event.Change.IsNewerThan] compares.
func (h Entry) Change() event.Change {
	return event.Change{Key: h.Key, Epoch: h.Epoch, UID: h.UID, ResourceVersion: h.Version, Deleted: h.Deleted}
}

func entryOf(key event.Key, sequence uint64, header nats.Header) Entry {
	return Entry{
		Key: key, Sequence: sequence, Epoch: header.Get(topology.EpochHeader), UID: header.Get(topology.UIDHeader),
		Version: header.Get(topology.VersionHeader), Deleted: header.Get(topology.OperationHeader) == topology.Delete,
		ContentHash: header.Get(HeaderContentHash),
	}
}

// encodeMessage encodes c. It omits the object if the message would be too large for the server.
func (p *Publisher) encodeMessage(subject string, c event.Change, opts PublicationOptions) (*nats.Msg, error) {
	data, err := c.Marshal()
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > p.js.Conn().MaxPayload()-maxHeaderBytes {
		c.Object, c.Omitted = nil, true
		if data, err = c.Marshal(); err != nil {
			return nil, err
		}
	}
	msg := &nats.Msg{Subject: subject, Data: data, Header: topology.ChangeHeaders(c)}
	msg.Header.Set(headerContentType, contentType)
	msg.Header.Set(HeaderSchema, schema)
	if opts.ContentHash != "" {
		msg.Header.Set(HeaderContentHash, opts.ContentHash)
	}
	if c.Traceparent != "" {
		msg.Header.Set(headerTraceparent, c.Traceparent)
	}
	if opts.Replay {
		msg.Header.Set(topology.ReplayHeader, time.Now().UTC().Format(time.RFC3339Nano))
	}
	return msg, nil
}

func publishOptions(c event.Change, id string, expected uint64, opts PublicationOptions) []jetstream.PublishOpt {
	conditions := []jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithExpectLastSequencePerSubject(expected)}
	if c.Deleted {
		conditions = append(conditions, jetstream.WithMsgTTL(cmp.Or(opts.TTL, topology.TombstoneTTL)))
	}
	return conditions
}
