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

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/tuple-sync/declared"
)

// simulatedProcess is one run of the service.
type simulatedProcess struct {
	t rapid.TB
	*reconciler
	state  *declared.State
	view   *informer.Informer
	routes map[event.Key][]Key
	dirty  map[Key]bool
	// wrote is which key wrote a state that the bus has not told of.
	wrote map[writtenState]Key
	// waiting holds keys to run again after some time.
	waiting map[Key]bool
	// later is why a pass asked for its key again.
	later error
}

// writtenState is a state of an object.
type writtenState struct {
	key                 event.Key
	uid, epoch, version string
}

func stateOf(c event.Change) writtenState {
	if c.Deleted {
		return writtenState{key: c.Key, uid: c.UID}
	}
	return writtenState{c.Key, c.UID, c.Epoch, c.ResourceVersion}
}

// recordingRequest is a pass of whose writes and objects the process takes note, as the engine of consume does.
type recordingRequest struct {
	*controller.Request[Key]
	process *simulatedProcess
}

func (n recordingRequest) RecordWrite(ctx context.Context, cause, now event.Change) error {
	if cause.Generation == now.Generation {
		n.process.wrote[stateOf(n.process.view.WithCurrentEpoch(now))] = n.Key
	}
	return n.Request.RecordWrite(ctx, cause, now)
}

func (n recordingRequest) RequeueAfter(time.Duration) { n.process.waiting[n.Key] = true }

func (n recordingRequest) RequeueOnChange(objects ...event.Key) (again bool) {
	for _, object := range objects {
		if !slices.Contains(n.process.routes[object], n.Key) {
			n.process.routes[object] = append(n.process.routes[object], n.Key)
			again = true
		}
	}
	return again
}

func (n recordingRequest) RequeueWithBackoff(why error) { n.process.later = why }

// reconcile runs one pass.
func (p *simulatedProcess) reconcile(k Key, resync bool) (*controller.Request[Key], error) {
	pass := controller.NewRequest(p.view, k, resync)
	return pass, p.declared.Reconcile(context.Background(), recordingRequest{pass, p}, k.declaredKey(), resync)
}

// settling bounds how long calls of a dead process may take effect.
const settling = 10 * time.Second

var errCrash = errors.New("the process is dead")

// start makes a process that knows what the bus holds.
func start(w *simulatedServers, bus map[event.Key]event.Change) *simulatedProcess {
	v := informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)})
	log, state, models := slog.New(slog.DiscardHandler), declared.NewState(v, event.Key{}, ""), newModelCache(w)
	r := &reconciler{declared: declared.New(declared.Config{
		State: state, View: v, Home: "local", Cluster: w, Status: setup.NewStatusWriter(w, v, log), OpenFGA: w, Models: models, Log: log, Now: w.now, Settling: settling, Replica: w.newReplica(),
		Retention: time.Hour, Restored: func(int) {},
		Writer: &storeWriter{
			openFGA: w, metrics: newWriteMetrics(prometheus.NewRegistry(), func() int { return 0 }),
		},
	})}
	p := &simulatedProcess{t: w, reconciler: r, state: state, view: v, routes: map[event.Key][]Key{}, dirty: map[Key]bool{}, wrote: map[writtenState]Key{}, waiting: map[Key]bool{}}
	for _, k := range slices.SortedFunc(maps.Keys(bus), func(a, b event.Key) int { return strings.Compare(a.SubjectTokens(), b.SubjectTokens()) }) {
		p.receive(bus[k])
	}
	return p
}

// receive takes a message as the engine of consume does.
func (p *simulatedProcess) receive(change event.Change) {
	if err := p.view.Apply(context.Background(), change); err != nil {
		p.t.Fatal(err)
	}
	now := p.AffectedKeys(change.Key)
	writer, echo := p.wrote[stateOf(change)]
	delete(p.wrote, stateOf(change))
	for _, k := range append(slices.Clone(now), p.routes[change.Key]...) {
		p.dirty[k] = p.dirty[k] || !echo || k != writer
		if !p.dirty[k] {
			delete(p.dirty, k)
		}
	}
	p.routes[change.Key] = now
}

// wait lets time go by, and makes the keys that wait for it come again.
func (p *simulatedProcess) wait(w *simulatedServers) {
	w.clock += settling
	maps.Copy(p.dirty, p.waiting)
	clear(p.waiting)
}

// newThing is an object that somebody has just created.
func (w *simulatedServers) newThing(kind kinds.Kind, name string) *simulatedObject {
	w.version++
	a := &simulatedObject{kind: kind, meta: metav1.ObjectMeta{
		Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, w.version)), Generation: 1,
		CreationTimestamp: metav1.NewTime(time.Unix(int64(w.version), 0)),
	}}
	w.things[a.key()] = a
	return a
}
