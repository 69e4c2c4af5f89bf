package publish

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Headers of a change. They repeat what a sweep needs to know, so that it reads no bodies.
const (
	// HeaderSchema is the version of the wire form.
	HeaderSchema = "Entail-Schema"
	// HeaderEpoch is the change's epoch.
	HeaderEpoch = "Entail-Epoch"
	// HeaderUID is the object's UID.
	HeaderUID = "Entail-Uid"
	// HeaderVersion is the object's resourceVersion.
	HeaderVersion = "Entail-Resource-Version"
	// HeaderOperation is "upsert" or "delete".
	HeaderOperation = "Entail-Operation"
	// HeaderMeaning is [Options.Meaning].
	HeaderMeaning = "Entail-Meaning"

	headerContentType = "Content-Type"
	headerTraceparent = "traceparent"
)

const (
	schema      = "1"
	contentType = "application/protobuf"
	upsert      = "upsert"
	deleted     = "delete"
	// overhead is more than all headers take together; the server counts them too.
	overhead = 4 << 10
)

// Head is what a subject holds, as its headers tell. A message that is not one of
// ours has a sequence and nothing else.
type Head struct {
	Key      event.Key
	Sequence uint64
	Epoch    string
	// UID is empty in messages of earlier releases.
	UID string
	// Version is the object's resourceVersion.
	Version string
	Deleted bool
	Meaning string
}

// Change is as much of the change as [event.Change.NewerThan] compares.
func (h Head) Change() event.Change {
	return event.Change{Key: h.Key, Epoch: h.Epoch, UID: h.UID, ResourceVersion: h.Version, Deleted: h.Deleted}
}

func headOf(key event.Key, sequence uint64, header nats.Header) Head {
	return Head{
		Key: key, Sequence: sequence, Epoch: header.Get(HeaderEpoch), UID: header.Get(HeaderUID), Version: header.Get(HeaderVersion),
		Deleted: header.Get(HeaderOperation) == deleted, Meaning: header.Get(HeaderMeaning),
	}
}

// message is c as it goes over the wire. A change that the server would refuse for
// its size travels without the object.
func (p *Publisher) message(subject string, c event.Change, opts Options) (*nats.Msg, error) {
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
	msg.Header.Set(HeaderOperation, operation(c))
	if opts.Meaning != "" {
		msg.Header.Set(HeaderMeaning, opts.Meaning)
	}
	if c.Traceparent != "" {
		msg.Header.Set(headerTraceparent, c.Traceparent)
	}
	if opts.Replay {
		msg.Header.Set(topology.ReplayHeader, time.Now().UTC().Format(time.RFC3339Nano))
	}
	return msg, nil
}

func operation(c event.Change) string {
	if c.Deleted {
		return deleted
	}
	return upsert
}

func conditions(c event.Change, id string, expected uint64, opts Options) []jetstream.PublishOpt {
	conditions := []jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithExpectLastSequencePerSubject(expected)}
	if c.Deleted {
		conditions = append(conditions, jetstream.WithMsgTTL(opts.ttl()))
	}
	return conditions
}
