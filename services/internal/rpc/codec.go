package rpc

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// strictCodecs returns codecs that refuse requests with unknown fields. An unknown field may be a filter, and without
// it the answer would contain too much. JSON answers contain fields that are false, zero or empty.
func strictCodecs() connect.HandlerOption {
	const name = "json"
	return connect.WithHandlerOptions(
		connect.WithCodec(strictProtoCodec{}), connect.WithCodec(strictJSONCodec(name)), connect.WithCodec(strictJSONCodec(name+"; charset=utf-8")))
}

var errNoMessage = errors.New("not a protobuf message")

type strictProtoCodec struct{}

// Name implements [connect.Codec].
func (strictProtoCodec) Name() string { return "proto" }

// Marshal implements [connect.Codec].
func (strictProtoCodec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	return proto.Marshal(m)
}

// Unmarshal implements [connect.Codec].
func (strictProtoCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return errNoMessage
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return err
	}
	return protorange.Range(m.ProtoReflect(), func(path protopath.Values) error {
		at, ok := path.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok || len(at.GetUnknown()) == 0 {
			return nil
		}
		number, _, _ := protowire.ConsumeTag(at.GetUnknown())
		return fmt.Errorf("unknown field %d at %s: this server may be older than the client", number, path.Path)
	})
}

// strictJSONCodec is the JSON codec for one content type.
type strictJSONCodec string

// Name implements [connect.Codec].
func (t strictJSONCodec) Name() string { return string(t) }

// Marshal implements [connect.Codec].
func (strictJSONCodec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
}

// Unmarshal implements [connect.Codec].
func (strictJSONCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return errNoMessage
	}
	return protojson.Unmarshal(data, m)
}
