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
	if !s.ReadyForConnections(10 * time.Second) {
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

func TestEnsureMayRunAnyNumberOfTimes(t *testing.T) {
	t.Parallel()
	js := bus(t)
	for range 3 {
		if err := topology.Ensure(t.Context(), js, 1); err != nil {
			t.Fatal(err)
		}
		for _, service := range topology.Services() {
			if _, err := topology.EnsureConsumer(t.Context(), js, service); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := js.StreamNames(t.Context())
	var all []string
	for name := range names.Name() {
		all = append(all, name)
	}
	slices.Sort(all)
	want := []string{topology.Announce, topology.Changes, topology.DeadLetters, topology.Results, topology.Sync}
	if !slices.Equal(all, want) {
		t.Errorf("streams %v, want %v", all, want)
	}
}

func TestOnlyTheNewestStateOfAnObjectIsKeptButEveryDeadLetter(t *testing.T) {
	t.Parallel()
	js := bus(t)
	if err := topology.Ensure(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	key := event.Key{Cluster: "c", GroupResource: kinds.Stores().GroupResource, Name: "a.b"}
	for stream, test := range map[string]struct {
		subject string
		want    uint64
	}{
		topology.Changes:     {topology.ChangeSubject(key), 1},
		topology.Results:     {topology.ResultSubject("s", key), 1},
		topology.Sync:        {topology.SyncSubject("c", key.GroupResource), 1},
		topology.DeadLetters: {topology.DeadLetterSubject("s", topology.ChangeSubject(key)), 3},
		topology.Announce:    {topology.AnnounceSubject("01ABC"), 3},
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

func TestAnObjectsSubjectIsInItsKindsFilterAndNoOther(t *testing.T) {
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
	if got, uid, err := topology.ParseChangeSubject(subject); err != nil || got != key || uid != "" {
		t.Errorf("parsed %v, %q, %v", got, uid, err)
	}
	if _, _, err := topology.ParseChangeSubject(topology.WakeSubject("s")); err == nil {
		t.Error("a wake was read as a change")
	}
}

func TestATombstoneHasASubjectOfItsOwnThatItsConsumersSee(t *testing.T) {
	t.Parallel()
	key := event.Key{Cluster: "c.1", GroupResource: kinds.RoleBindings().GroupResource, Namespace: "n", Name: "x.y"}
	subject := topology.TombstoneSubject(key, "u.1")
	if !server.SubjectsCollide(subject, topology.ChangesFilter("", key.GroupResource)) {
		t.Error("no consumer sees it")
	}
	heads := topology.HeadsFilter(key.Cluster, key.GroupResource)
	if server.SubjectsCollide(subject, heads) || !server.SubjectsCollide(topology.ChangeSubject(key), heads) {
		t.Errorf("%s does not match the objects alone", heads)
	}
	if got, uid, err := topology.ParseChangeSubject(subject); err != nil || got != key || uid != "u.1" {
		t.Errorf("parsed %v, %q, %v", got, uid, err)
	}
	for _, bad := range []string{topology.ChangeSubject(key) + "._", topology.ChangeSubject(key) + ".%zz", subject + ".more"} {
		if _, _, err := topology.ParseChangeSubject(bad); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestEveryConsumedKindIsWatched(t *testing.T) {
	t.Parallel()
	for _, service := range topology.Services() {
		if strings.ContainsAny(service.Name, ". *>") {
			t.Errorf("%q is no durable's name", service.Name)
		}
		if found, ok := topology.ServiceNamed(service.Name); !ok || found.Name != service.Name {
			t.Errorf("%s is not found by its name", service.Name)
		}
		for _, kind := range service.Kinds {
			if _, ok := kinds.Of(kind); !ok {
				t.Errorf("%s consumes %s, which nobody watches", service.Name, kind)
			}
		}
	}
}
