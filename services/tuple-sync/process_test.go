package tuplesync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
)

// process is one life of the service.
type process struct {
	t rapid.TB
	*reconciler
	routes map[event.Key][]Key
	dirty  map[Key]bool
}

var errCrash = errors.New("the process is dead")

// start makes a process that knows what the bus holds.
func start(w *world, bus map[event.Key]event.Change) *process {
	v := view.New(view.Config{Log: slog.New(slog.DiscardHandler)})
	r := &reconciler{
		scene: newScene(v), view: v, cluster: w, openFGA: w, log: slog.New(slog.DiscardHandler),
		cache: newModels(w),
		announce: func(context.Context, *eventv1.StoreChanged) error {
			return w.call("announce", func() error { return nil })
		},
	}
	p := &process{t: w, reconciler: r, routes: map[event.Key][]Key{}, dirty: map[Key]bool{}}
	for _, k := range slices.SortedFunc(maps.Keys(bus), func(a, b event.Key) int { return strings.Compare(a.Tokens(), b.Tokens()) }) {
		p.receive(bus[k])
	}
	return p
}

// receive takes a message as the engine of consume does.
func (p *process) receive(change event.Change) {
	if err := p.view.Apply(context.Background(), change); err != nil {
		p.t.Fatal(err)
	}
	now := p.Keys(change.Key)
	for _, k := range append(slices.Clone(now), p.routes[change.Key]...) {
		p.dirty[k] = true
	}
	p.routes[change.Key] = now
}

// newThing is an object that somebody has just created.
func (w *world) newThing(kind kinds.Kind, name string) *thing {
	w.version++
	a := &thing{kind: kind, meta: metav1.ObjectMeta{
		Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, w.version)), Generation: 1,
		CreationTimestamp: metav1.NewTime(time.Unix(int64(w.version), 0)),
	}}
	w.things[a.key()] = a
	return a
}
