package topology

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// ErrInvalidChange means that a message is not a valid change of its subject. The object is unknown until the watcher
// publishes it again.
var ErrInvalidChange = errors.New("refused")

// DecodeRawChange decodes a message of [Changes]. Its subject, headers, fields and the metadata of its object must
// agree. Every error wraps [ErrInvalidChange], because the message will never be valid.
func DecodeRawChange(subject string, header nats.Header, data []byte) (event.Change, error) {
	key, uid, err := ParseChangeOrTombstoneSubject(subject)
	if err != nil {
		return event.Change{}, fmt.Errorf("%w: %w", ErrInvalidChange, err)
	}
	change, err := event.UnmarshalChange(key, data)
	if err == nil && uid != "" && (change.UID != uid || !change.Deleted) {
		err = fmt.Errorf("the tombstone of UID %s of %s says that of %s: deleted is %v", uid, key, change.UID, change.Deleted)
	}
	if err == nil {
		err = cmp.Or(checkHeaders(change, header), checkMetadata(change))
	}
	if err != nil {
		return event.Change{}, fmt.Errorf("%w: %w", ErrInvalidChange, err)
	}
	return change, nil
}

// ChangeHeaders returns the headers that repeat fields of c.
func ChangeHeaders(c event.Change) nats.Header {
	operation := Upsert
	if c.Deleted {
		operation = Delete
	}
	header := nats.Header{}
	header.Set(EpochHeader, c.Epoch)
	header.Set(UIDHeader, c.UID)
	header.Set(VersionHeader, c.ResourceVersion)
	header.Set(OperationHeader, operation)
	return header
}

// checkHeaders returns an error if the headers differ from the fields of c.
func checkHeaders(c event.Change, header nats.Header) error {
	want := ChangeHeaders(c)
	for name := range want {
		if got := header.Get(name); got != want.Get(name) {
			return fmt.Errorf("header %s of %s is %.200q, its field is %.200q", name, c.Key, got, want.Get(name))
		}
	}
	return nil
}

// checkMetadata returns an error if the metadata of the object differs from the fields of c. It does not compare the
// resourceVersion of a Secret or of a deletion, because a deletion may have a later one than the last state.
func checkMetadata(c event.Change) error {
	if len(c.Object) == 0 {
		return nil
	}
	var object struct {
		Metadata struct {
			Name            string `json:"name"`
			Namespace       string `json:"namespace"`
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := event.DecodeObjectCaseSensitive(c.Object, &object); err != nil {
		return nil //nolint:nilerr // Services report that the object cannot be decoded.
	}
	has := object.Metadata
	if c.Deleted || c.Key.GroupResource == kinds.Secrets().GroupResource {
		has.ResourceVersion = ""
	}
	for _, field := range []struct{ name, got, want string }{
		{"name", has.Name, c.Key.Name},
		{"namespace", has.Namespace, c.Key.Namespace},
		{"uid", has.UID, c.UID},
		{"resourceVersion", has.ResourceVersion, c.ResourceVersion},
	} {
		if field.got != "" && field.got != field.want {
			return fmt.Errorf("metadata.%s of %s is %.200q, its field is %.200q", field.name, c.Key, field.got, field.want)
		}
	}
	return nil
}
