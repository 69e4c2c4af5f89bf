package reflector

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// behind is for how long the stream may lack something, by the next heartbeat; -1 if there is none.
func behind(r *reflector) time.Duration {
	h, ok := r.heartbeat(time.Now())
	if !ok {
		return -1
	}
	return h.GetBehind().AsDuration()
}

func TestAHeartbeatSaysForHowLongTheStreamMayLackSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reflector{targets: &targets{}}
		k := newKindReflector(r, kinds.Stores(), nil)
		r.kinds = []*kindReflector{k}
		wait := func(d time.Duration) { <-time.After(d) }
		want := func(when string, d time.Duration) {
			t.Helper()
			if got := behind(r); got != d {
				t.Errorf("%s: %s behind, want %s", when, got, d)
			}
		}
		want("before the first snapshot", -1)
		end := k.open()
		want("before the marker of the snapshot", -1)
		k.stream = "one"
		wait(time.Hour)
		want("while it is watched", 0)
		k.waiting[types.NamespacedName{Name: "a"}] = state{Object: source.Object{Change: event.Change{ObservedAt: time.Now()}}}
		wait(3 * time.Second)
		want("while a change waits", 3*time.Second)
		clear(k.waiting)
		end()
		wait(4 * time.Second)
		want("while it is not watched", 4*time.Second)
		refused := k.open()
		wait(opening / 2)
		want("while a watch may yet be refused", 5*time.Second)
		refused()
		wait(time.Second)
		want("when it was", 6*time.Second)
		k.open()
		wait(opening)
		want("while it is watched again", 0)
	})
}

func TestHeartbeatsGoOnWhileAllIsWell(t *testing.T) {
	b := newBus(t)
	c := newCluster()
	c.apply("a", "1", "")
	b.run(b.config(c))
	var first *eventv1.Heartbeat
	eventually(t, func() error {
		msg, err := b.stream(topology.Sync).GetLastMsgForSubject(t.Context(), topology.HeartbeatSubject("local"))
		if err != nil {
			return err
		}
		var h eventv1.Heartbeat
		if err := proto.Unmarshal(msg.Data, &h); err != nil {
			return err
		}
		if first == nil {
			first = &h
		}
		if !h.GetWrittenAt().AsTime().After(first.GetWrittenAt().AsTime()) {
			return errors.New("there is one heartbeat")
		}
		if version := h.GetResourceVersions()[kinds.Stores().GroupResource.String()]; version == "" || h.GetBehind().AsDuration() != 0 {
			return fmt.Errorf("it says %v", &h)
		}
		return nil
	})
}
