//go:build integration

package proof

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// streamDamages returns the ways in which a user may damage a stream.
func streamDamages() map[string]func(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream) error {
	return map[string]func(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream) error{
		"deleted": func(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream) error {
			return js.DeleteStream(ctx, stream.CachedInfo().Config.Name)
		},
		"emptied": func(ctx context.Context, _ jetstream.JetStream, stream jetstream.Stream) error {
			return stream.Purge(ctx)
		},
		"made to hold one message": func(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream) error {
			config := stream.CachedInfo().Config
			config.MaxMsgs = 1
			_, err := js.UpdateStream(ctx, config)
			return err
		},
	}
}

func TestDamagedStreamsAreRestoredWithContent(t *testing.T) {
	s := startInProcessServices(t, topology.Watcher, topology.StoreSync, topology.TupleSync)
	js := s.bus.JetStream(t)
	tuples := 0
	change := func() {
		tuples++
		s.kube.Apply(t, kinds.Stores(), "changed", corev1alpha1.StoreSpec{CoreModule: core, Tuples: []corev1alpha1.Tuple{tuple(fmt.Sprint(tuples))}})
		testenv.Eventually(t, time.Minute, s.settled)
	}
	s.kube.Apply(t, kinds.Stores(), untouched, corev1alpha1.StoreSpec{CoreModule: core})
	change()
	testenv.Eventually(t, time.Minute, func() error { return complete(t.Context(), js) })
	for _, name := range topology.StreamNames() {
		for harm, do := range streamDamages() {
			t.Run(name+" "+harm, func(t *testing.T) {
				stream, err := js.Stream(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				if err := do(t.Context(), js, stream); err != nil {
					t.Fatal(err)
				}
				change()
				testenv.Eventually(t, time.Minute, func() error { return complete(t.Context(), js) })
			})
		}
	}
}

// settled returns nil once Store "changed" is Ready.
func (s *inProcessServices) settled() error {
	found, err := list[corev1alpha1.Store](context.Background(), s.objects, kinds.Stores())
	if err != nil {
		return err
	}
	if store := found["changed"]; !ready(store.Status.Conditions, store.Generation) {
		return errors.New("the Store is not ready")
	}
	return nil
}

// untouched is a Store that never changes. All its messages either survived or were published again.
const untouched = "untouched"

// complete returns nil once every stream has its configuration and holds the messages about Store untouched.
func complete(ctx context.Context, js jetstream.JetStream) error {
	errs := []error{topology.CheckStreams(ctx, js)}
	key := event.Key{Cluster: "local", GroupResource: kinds.Stores().GroupResource, Name: untouched}
	for subject, stream := range map[string]string{
		topology.ChangeSubject(key): topology.Changes, topology.MarkerSubject("local", key.GroupResource): topology.Sync,
		topology.ResultSubject(topology.StoreSync, key): topology.Results, topology.ResultSubject(topology.TupleSync, key): topology.Results,
	} {
		s, err := js.Stream(ctx, stream)
		if err == nil {
			_, err = s.GetLastMsgForSubject(ctx, subject)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
