//go:build integration

package proof

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/service"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	rounds     = 80
	settleTime = 2 * time.Minute
)

// names of the services, the watcher twice: one leads, one stands by.
func names() []string {
	return []string{topology.Watcher, topology.Watcher, topology.StoreSync, topology.TupleSync}
}

func TestWhateverGoesWrongOpenFGAEndsUpAsDeclared(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ENTAIL_TORTURE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("to repeat: ENTAIL_TORTURE_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	bus, openFGA, kube := testbed.NATS(t), testbed.OpenFGA(t), testbed.Kube(t)
	c := &chaos{t: t, random: random, bus: bus, openFGA: openFGA, kube: kube, js: bus.JetStream(t)}
	for _, name := range names() {
		around := surroundings{nats: bus.URLOf(name), openFGA: openFGA.Config(), kubeconfig: kube.Kubeconfig(name)}
		c.processes = append(c.processes, spawn(t, name, around))
	}
	w := &world{t: t, random: random, kube: kube, objects: kube.Objects(t), openFGA: openFGA.Client(t)}
	for range rounds {
		w.act()
		if random.IntN(3) == 0 {
			c.strike()
		}
		<-time.After(time.Duration(random.IntN(120)) * time.Millisecond)
	}
	testbed.Eventually(t, settleTime, w.settled)
	testbed.CaughtUp(t, c.js, topology.StoreSync)
	testbed.CaughtUp(t, c.js, topology.TupleSync)
	testbed.Eventually(t, settleTime, w.quiet)
	for _, p := range c.processes {
		p.stop()
	}
	replayWritesNothing(t, bus, openFGA, kube)
	if err := w.settled(); err != nil {
		t.Errorf("after the replay: %v", err)
	}
}

// chaos is everything that can go wrong beside what people do.
type chaos struct {
	t         *testing.T
	random    *rand.Rand
	bus       *testbed.NATSServer
	openFGA   *testbed.OpenFGAServer
	kube      *testbed.KubeServer
	js        jetstream.JetStream
	processes []*process
}

func (c *chaos) strike() {
	c.t.Helper()
	switch n := c.random.IntN(13); {
	case n < 6:
		p := c.processes[c.random.IntN(len(c.processes))]
		p.kill()
		p.start()
	case n < 8:
		c.ignoring(again(c.t.Context(), c.js, nil))
	case n < 9:
		c.ignoring(c.js.DeleteConsumer(c.t.Context(), topology.Changes, names()[2+c.random.IntN(2)]))
	case n < 10:
		c.ignoring(c.js.DeleteStream(c.t.Context(), topology.Changes))
	case n < 11:
		c.bus.Stop()
		c.bus.Start(c.t)
	case n < 12:
		c.openFGA.Stop()
		c.openFGA.Start(c.t)
	default:
		c.kube.Kill()
		c.kube.Start(c.t)
	}
}

// ignoring passes over what other chaos has already broken.
func (c *chaos) ignoring(err error) {
	if err != nil {
		c.t.Logf("chaos: %v", err)
	}
}

// again publishes every message once more with the given headers, except over a newer one.
func again(ctx context.Context, js jetstream.JetStream, header nats.Header) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := js.Stream(ctx, topology.Changes)
	if err != nil {
		return err
	}
	info := stream.CachedInfo().State
	for seq := info.FirstSeq; seq <= info.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		msg := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: maps.Clone(header)}
		_, err = js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(seq))
		if apiErr := new(jetstream.APIError); err != nil && !errors.As(err, &apiErr) {
			return err
		}
	}
	return nil
}

// replayWritesNothing runs all services anew, in this process, where what they write is
// counted, and has every message delivered again and every backend compared.
func replayWritesNothing(t *testing.T, bus *testbed.NATSServer, openFGA *testbed.OpenFGAServer, kube *testbed.KubeServer) {
	t.Helper()
	js := bus.JetStream(t)
	for _, name := range names()[2:] { // Others have a durable only until the stream is wiped.
		if err := js.DeleteConsumer(t.Context(), topology.Changes, name); err != nil {
			t.Fatal(err)
		}
	}
	openFGABefore, kubeBefore := openFGA.Writes(), kube.Writes()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, name := range names()[1:] {
		around := surroundings{nats: bus.URLOf(name), openFGA: openFGA.Config(), embed: service.Embed{Kube: kube.Config(t, name), Log: slog.New(slog.DiscardHandler)}}
		running.Go(func() {
			if err := run(ctx, name, around); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for _, name := range names()[2:] {
		testbed.CaughtUp(t, js, name)
	}
	if err := again(t.Context(), js, nats.Header{topology.ReplayHeader: {"everything"}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range names()[2:] {
		testbed.CaughtUp(t, js, name)
	}
	cancel()
	running.Wait()
	if got := openFGA.Writes() - openFGABefore; got != 0 {
		t.Errorf("a full replay made %d writes to OpenFGA: %v", got, openFGA.WritesByOp())
	}
	if got := kube.Writes() - kubeBefore; got != 0 {
		t.Errorf("a full replay made %d writes to the API server: %v", got, kube.WritesByOp())
	}
}
