package topology

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/fault"
)

// requestTimeout bounds one request: of those that a cluster does not answer it answers the next.
const requestTimeout = 3 * time.Second

// Difference is how a stream differs from the table.
type Difference struct {
	Stream string
	// Missing says that there is none.
	Missing bool
	// Fields of its configuration have other values.
	Fields []string
	// Copies is how many there are if they are more than were asked for. They are kept: the
	// redundancy of a cluster does not hang on a flag.
	Copies int

	want jetstream.StreamConfig
}

// Wrong reports whether something has to be restored.
func (d Difference) Wrong() bool { return d.Missing || len(d.Fields) > 0 }

// String says what is wrong.
func (d Difference) String() string {
	if d.Missing {
		return "stream " + d.Stream + " is missing"
	}
	return "stream " + d.Stream + " differs in " + strings.Join(d.Fields, ", ")
}

// Compare looks at every stream, and lists those that are not as in the table. What cannot be
// looked at is an error, and does not hide the others.
func Compare(ctx context.Context, js jetstream.JetStream, replicas int) ([]Difference, error) {
	all := streams(replicas)
	differences, errs := make([]Difference, len(all)), make([]error, len(all))
	var looking sync.WaitGroup
	for i, want := range all {
		looking.Go(func() {
			if differences[i], errs[i] = compare(ctx, js, want); errs[i] != nil {
				errs[i] = fmt.Errorf("look at stream %s: %w", want.Name, errs[i])
			}
		})
	}
	looking.Wait()
	return slices.DeleteFunc(differences, func(d Difference) bool { return !d.Wrong() && d.Copies == 0 }), errors.Join(errs...)
}

func compare(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (Difference, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	d := Difference{Stream: want.Name, want: want}
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		d.Missing = true
		return d, nil
	}
	if err != nil {
		return d, err
	}
	have := stream.CachedInfo().Config
	if have.Replicas > want.Replicas {
		d.Copies, d.want.Replicas = have.Replicas, have.Replicas
	}
	have.Metadata = nil // A server adds what it needs of a client.
	d.Fields = differing(have, d.want)
	return d, nil
}

// differing names the fields of two structs that have not the same value.
func differing[T any](have, want T) []string {
	var names []string
	h, w := reflect.ValueOf(have), reflect.ValueOf(want)
	for i := range h.NumField() {
		if !reflect.DeepEqual(h.Field(i).Interface(), w.Field(i).Interface()) {
			names = append(names, h.Type().Field(i).Name)
		}
	}
	return names
}

// Restore makes the stream what the table says. Only the owner of the streams, the watcher, does:
// who may change a stream may do anything to it. The error is [fault.Terminal] when no time helps.
func Restore(ctx context.Context, js jetstream.JetStream, d Difference) error {
	if !d.Wrong() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	change := js.UpdateStream
	if d.Missing {
		change = js.CreateStream
	}
	if _, err := change(ctx, d.want); err != nil {
		return refusal(fmt.Errorf("restore stream %s: %w", d.Stream, err))
	}
	return nil
}

// Ensure compares and restores all streams.
func Ensure(ctx context.Context, js jetstream.JetStream, replicas int) error {
	differences, err := Compare(ctx, js, replicas)
	errs := []error{err}
	for _, d := range differences {
		errs = append(errs, Restore(ctx, js, d))
	}
	return errors.Join(errs...)
}

// Present is nil when every stream is there and as in the table; in how many copies is not the
// business of who asks.
func Present(ctx context.Context, js jetstream.JetStream) error {
	differences, err := Compare(ctx, js, 1)
	var wrong []string
	for _, d := range differences {
		if d.Wrong() {
			wrong = append(wrong, d.String())
		}
	}
	if len(wrong) > 0 {
		err = errors.Join(err, fmt.Errorf("%s: does the watcher run?", strings.Join(wrong, ", ")))
	}
	return err
}

// Codes by which JetStream refuses a stream for a reason that waiting does not change.
const (
	invalidConfig      jetstream.ErrorCode = 10052
	subjectsOverlap    jetstream.ErrorCode = 10065
	replicasImpossible jetstream.ErrorCode = 10074
)

// refusal marks what needs a person.
func refusal(err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok || !slices.Contains([]jetstream.ErrorCode{invalidConfig, subjectsOverlap, replicasImpossible}, api.ErrorCode) {
		return err
	}
	if api.ErrorCode == replicasImpossible {
		err = fmt.Errorf("use --stream-replicas=1 or a cluster of NATS servers: %w", err)
	}
	return fault.Terminal(err)
}
