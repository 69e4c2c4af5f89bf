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

// requestTimeout bounds one request. A cluster of NATS servers may lose one request and answer the next.
const requestTimeout = 3 * time.Second

// StreamDifference describes how a stream differs from its definition.
type StreamDifference struct {
	Stream string
	// Missing means that the stream does not exist.
	Missing bool
	// Fields names the configuration fields that differ.
	Fields []string
	// Replicas is the number of replicas of the stream if it is larger than the configured number. The larger number is
	// kept, because a flag must not reduce the redundancy of an existing stream.
	Replicas int

	want jetstream.StreamConfig
}

// NeedsRepair reports whether the stream must be created or updated.
func (d StreamDifference) NeedsRepair() bool { return d.Missing || len(d.Fields) > 0 }

// String describes the difference.
func (d StreamDifference) String() string {
	if d.Missing {
		return "stream " + d.Stream + " is missing"
	}
	return "stream " + d.Stream + " differs in " + strings.Join(d.Fields, ", ")
}

// CompareStreams lists the streams that differ from their definitions. It returns the streams that it cannot read as
// errors, together with the differences of the other streams.
func CompareStreams(ctx context.Context, js jetstream.JetStream, replicas int) ([]StreamDifference, error) {
	all := streamConfigs(replicas)
	differences, errs := make([]StreamDifference, len(all)), make([]error, len(all))
	var looking sync.WaitGroup
	for i, want := range all {
		looking.Go(func() {
			if differences[i], errs[i] = compareStream(ctx, js, want); errs[i] != nil {
				errs[i] = fmt.Errorf("inspect stream %s: %w", want.Name, errs[i])
			}
		})
	}
	looking.Wait()
	return slices.DeleteFunc(differences, func(d StreamDifference) bool { return !d.NeedsRepair() && d.Replicas == 0 }), errors.Join(errs...)
}

func compareStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (StreamDifference, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	d := StreamDifference{Stream: want.Name, want: want}
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
		d.Replicas, d.want.Replicas = have.Replicas, have.Replicas
	}
	have.Metadata = nil // The server adds its own metadata.
	d.Fields = differingFields(have, d.want)
	return d, nil
}

// differingFields names the fields in which two structs differ.
func differingFields[T any](have, want T) []string {
	var names []string
	h, w := reflect.ValueOf(have), reflect.ValueOf(want)
	for i := range h.NumField() {
		if !reflect.DeepEqual(h.Field(i).Interface(), w.Field(i).Interface()) {
			names = append(names, h.Type().Field(i).Name)
		}
	}
	return names
}

// RepairStream creates or updates a stream as defined. Only the watcher calls it. The error is [fault.Terminal] if a
// retry cannot help.
func RepairStream(ctx context.Context, js jetstream.JetStream, difference StreamDifference) error {
	if !difference.NeedsRepair() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	change := js.UpdateStream
	if difference.Missing {
		change = js.CreateStream
	}
	if _, err := change(ctx, difference.want); err != nil {
		return classifyRefusal(fmt.Errorf("restore stream %s: %w", difference.Stream, err))
	}
	return nil
}

// EnsureStreams compares all streams with their definitions and restores them.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, replicas int) error {
	differences, err := CompareStreams(ctx, js, replicas)
	errs := []error{err}
	for _, d := range differences {
		errs = append(errs, RepairStream(ctx, js, d))
	}
	return errors.Join(errs...)
}

// CheckStreams returns nil if every stream exists as defined. It does not compare the number of replicas.
func CheckStreams(ctx context.Context, js jetstream.JetStream) error {
	differences, err := CompareStreams(ctx, js, 1)
	var wrong []string
	for _, d := range differences {
		if d.NeedsRepair() {
			wrong = append(wrong, d.String())
		}
	}
	if len(wrong) > 0 {
		err = errors.Join(err, fmt.Errorf("%s: does the watcher run?", strings.Join(wrong, ", ")))
	}
	return err
}

// These are JetStream's error codes for refusals that a retry cannot change.
const (
	invalidConfig      jetstream.ErrorCode = 10052
	subjectsOverlap    jetstream.ErrorCode = 10065
	replicasImpossible jetstream.ErrorCode = 10074
)

// classifyRefusal marks an error that an operator must correct as terminal.
func classifyRefusal(err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok || !slices.Contains([]jetstream.ErrorCode{invalidConfig, subjectsOverlap, replicasImpossible}, api.ErrorCode) {
		return err
	}
	if api.ErrorCode == replicasImpossible {
		err = fmt.Errorf("use --stream-replicas=1 or a cluster of NATS servers: %w", err)
	}
	return fault.Terminal(err)
}
