package topology_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

func bus(t *testing.T) jetstream.JetStream {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("server does not start")
	}
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestEnsureStreamsIsIdempotent(t *testing.T) {
	t.Parallel()
	js := bus(t)
	for range 3 {
		if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
			t.Fatal(err)
		}
		for _, service := range topology.DurableServices() {
			if _, err := topology.EnsureConsumer(t.Context(), js, service, topology.DefaultTakeoverBounds()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if differences, err := topology.CompareStreams(t.Context(), js, 1); len(differences) > 0 || err != nil {
		t.Errorf("made as they are not in the table: %v, %v", differences, err)
	}
	names := js.StreamNames(t.Context())
	var all []string
	for name := range names.Name() {
		all = append(all, name)
	}
	slices.Sort(all)
	want := []string{topology.Changes, topology.DeadLetters, topology.Results, topology.Sync}
	if !slices.Equal(all, want) {
		t.Errorf("streams %v, want %v", all, want)
	}
}

func TestCompareStreamsNamesDifferences(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		harm func(*jetstream.StreamConfig)
		want string
	}{
		"limits":      {func(c *jetstream.StreamConfig) { c.MaxMsgs, c.MaxAge = 1, time.Hour }, "differs in MaxMsgs, MaxAge"},
		"subjects":    {func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "more.>") }, "differs in Subjects"},
		"a transform": {func(c *jetstream.StreamConfig) { c.SubjectTransform = transform() }, "differs in SubjectTransform"},
		"a copy elsewhere": {
			func(c *jetstream.StreamConfig) {
				c.RePublish = &jetstream.RePublish{Source: ">", Destination: "elsewhere.>"}
			}, "differs in RePublish",
		},
	} {
		t.Run(name, func(t *testing.T) {
			js := bus(t)
			if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
				t.Fatal(err)
			}
			config := configOf(t, js, topology.Changes)
			test.harm(&config)
			if _, err := js.UpdateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			if err := topology.CheckStreams(t.Context(), js); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("others see %v, want %q", err, test.want)
			}
			if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
				t.Fatal(err)
			}
			if err := topology.CheckStreams(t.Context(), js); err != nil {
				t.Errorf("after it was restored: %v", err)
			}
		})
	}
}

func transform() *jetstream.SubjectTransformConfig {
	return &jetstream.SubjectTransformConfig{Source: topology.ResyncSubject("x"), Destination: "entail.changes.forged"}
}

func configOf(t *testing.T, js jetstream.JetStream, stream string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config
}

func TestEnsureConsumerCreatesAndRepairs(t *testing.T) {
	t.Parallel()
	js := bus(t)
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	requests, err := js.Conn().SubscribeSync("$JS.API.CONSUMER.CREATE.>")
	if err != nil {
		t.Fatal(err)
	}
	service := topology.DurableServices()[0]
	ensure := func(want int) {
		t.Helper()
		if _, err := topology.EnsureConsumer(t.Context(), js, service, topology.DefaultTakeoverBounds()); err != nil {
			t.Fatal(err)
		}
		// The server may answer a request before it has sent it to subscribers.
		if err := js.Conn().Flush(); err != nil {
			t.Fatal(err)
		}
		if got, _, err := requests.Pending(); err != nil || got != want {
			t.Errorf("asked for it %d times (%v), want %d", got, err, want)
		}
	}
	ensure(1)
	ensure(1)
	durable, err := js.Consumer(t.Context(), topology.Changes, service.Name)
	if err != nil {
		t.Fatal(err)
	}
	config := durable.CachedInfo().Config
	config.MaxAckPending = 1
	if _, err := js.UpdateConsumer(t.Context(), topology.Changes, config); err != nil {
		t.Fatal(err)
	}
	ensure(3)
	ensure(3)
}

func TestStreamsKeepNewestStateAndEveryDeadLetter(t *testing.T) {
	t.Parallel()
	js := bus(t)
	if err := topology.EnsureStreams(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	key := event.Key{Cluster: "c", GroupResource: kinds.Stores().GroupResource, Name: "a.b"}
	for stream, test := range map[string]struct {
		subject string
		want    uint64
	}{
		topology.Changes:     {topology.ChangeSubject(key), 1},
		topology.Results:     {topology.ResultSubject("s", key), 1},
		topology.Sync:        {topology.MarkerSubject("c", key.GroupResource), 1},
		topology.DeadLetters: {topology.DeadLetterSubject("s", topology.ChangeSubject(key)), 3},
	} {
		for range 3 {
			if ack, err := js.Publish(t.Context(), test.subject, []byte("x")); err != nil || ack.Stream != stream {
				t.Fatalf("publish on %s: %+v, %v", test.subject, ack, err)
			}
		}
		s, err := js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.CachedInfo().State.Msgs; got != test.want {
			t.Errorf("%s keeps %d, want %d", stream, got, test.want)
		}
	}
}

func TestChangesFilterMatchesItsKindOnly(t *testing.T) {
	t.Parallel()
	key := event.Key{Cluster: "c.1", GroupResource: kinds.Stores().GroupResource, Name: "x"}
	subject := topology.ChangeSubject(key)
	for filter, want := range map[string]bool{
		topology.ChangesFilter("", key.GroupResource):                         true,
		topology.ChangesFilter("c.1", key.GroupResource):                      true,
		topology.ChangesFilter("c", key.GroupResource):                        false,
		topology.ChangesFilter("", kinds.AuthorizationModels().GroupResource): false,
	} {
		if got := server.SubjectsCollide(subject, filter); got != want {
			t.Errorf("%s in %s: %v", subject, filter, got)
		}
	}
	if got, uid, err := topology.ParseChangeOrTombstoneSubject(subject); err != nil || got != key || uid != "" {
		t.Errorf("parsed %v, %q, %v", got, uid, err)
	}
	if _, _, err := topology.ParseChangeOrTombstoneSubject(topology.ResyncSubject("s")); err == nil {
		t.Error("a wake was read as a change")
	}
}

func TestBarrierSubjectIsOutsideChangeFilters(t *testing.T) {
	t.Parallel()
	barrier := topology.BarrierSubject("c.1")
	if !topology.IsBarrierSubject(barrier) || topology.IsServiceSubject(barrier) || topology.IsBarrierSubject(topology.EndMarkSubject("watcher")) {
		t.Errorf("%s is no barrier", barrier)
	}
	if !server.SubjectsCollide(barrier, topology.BarrierSubject("")) || server.SubjectsCollide(barrier, topology.ChangesFilter("", kinds.Stores().GroupResource)) {
		t.Errorf("%s collides with the wrong subjects", barrier)
	}
}

func TestTombstoneSubjectMatchesConsumerFilter(t *testing.T) {
	t.Parallel()
	key := event.Key{Cluster: "c.1", GroupResource: kinds.RoleBindings().GroupResource, Namespace: "n", Name: "x.y"}
	subject := topology.TombstoneSubject(key, "u.1")
	if !server.SubjectsCollide(subject, topology.ChangesFilter("", key.GroupResource)) {
		t.Error("no consumer sees it")
	}
	heads := topology.CurrentStatesFilter(key.Cluster, key.GroupResource)
	if server.SubjectsCollide(subject, heads) || !server.SubjectsCollide(topology.ChangeSubject(key), heads) {
		t.Errorf("%s does not match the objects alone", heads)
	}
	if got, uid, err := topology.ParseChangeOrTombstoneSubject(subject); err != nil || got != key || uid != "u.1" {
		t.Errorf("parsed %v, %q, %v", got, uid, err)
	}
	for _, bad := range []string{topology.ChangeSubject(key) + "._", topology.ChangeSubject(key) + ".%zz", subject + ".more"} {
		if _, _, err := topology.ParseChangeOrTombstoneSubject(bad); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestEveryConsumedKindIsWatched(t *testing.T) {
	t.Parallel()
	for _, service := range topology.DurableServices() {
		if strings.ContainsAny(service.Name, ". *>") {
			t.Errorf("%q is no durable's name", service.Name)
		}
		if found, ok := topology.FindService(service.Name); !ok || found.Name != service.Name {
			t.Errorf("%s is not found by its name", service.Name)
		}
		for _, kind := range service.Kinds {
			if _, ok := kinds.ByResource(kind); !ok {
				t.Errorf("%s consumes %s, which nobody watches", service.Name, kind)
			}
		}
	}
}
