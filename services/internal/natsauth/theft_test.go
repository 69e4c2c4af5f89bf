package natsauth_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/natsauth"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server with the shipped configuration. The password of each user is its name.
func start(t *testing.T) *server.Server {
	t.Helper()
	for _, user := range natsauth.UserNames() {
		t.Setenv(natsauth.PasswordVariable(user), `"`+user+`"`)
	}
	options, err := server.ProcessConfigFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port, options.StoreDir, options.JetStream, options.NoSigs = "127.0.0.1", -1, t.TempDir(), true, true
	options.JetStreamLimits.DefaultMaxConsumers = -1 // Older servers have no bound of their own.
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	return s
}

// userConnection is a connection with the credentials of one user.
type userConnection struct {
	t       *testing.T
	conn    *nats.Conn
	js      jetstream.JetStream
	refused chan error
}

func connect(t *testing.T, s *server.Server, name string) *userConnection {
	t.Helper()
	u := &userConnection{t: t, refused: make(chan error, 64)}
	var err error
	u.conn, err = nats.Connect(s.ClientURL(), nats.UserInfo(name, name), nats.CustomInboxPrefix(topology.InboxPrefix(name)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { u.refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.conn.Close)
	if u.js, err = jetstream.New(u.conn); err != nil {
		t.Fatal(err)
	}
	return u
}

// mayNot runs do, and fails the test unless the server refuses it with a permission violation.
func (u *userConnection) mayNot(what string, do func() error) {
	u.t.Helper()
	for len(u.refused) > 0 {
		<-u.refused
	}
	if err := errors.Join(do(), u.conn.FlushTimeout(time.Minute)); err != nil && !errors.Is(err, nats.ErrPermissionViolation) {
		u.t.Errorf("%s: %v", what, err)
		return
	}
	select {
	case err := <-u.refused:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			u.t.Errorf("%s: %v", what, err)
		}
	case <-time.After(time.Minute):
		u.t.Errorf("%s was not refused", what)
	}
}

func (u *userConnection) publish(subject string, data []byte) func() error {
	return func() error { return u.conn.PublishRequest(subject, u.conn.NewInbox(), data) }
}

// createStreamsAndConsumers creates the streams as the watcher does, and the consumers as the other services do at
// their start.
func createStreamsAndConsumers(t *testing.T, s *server.Server) {
	t.Helper()
	if err := topology.EnsureStreams(t.Context(), connect(t, s, topology.Watcher).js, 1); err != nil {
		t.Fatal(err)
	}
	for _, service := range topology.DurableServices() {
		js := connect(t, s, service.Name).js
		if err := topology.CheckStreams(t.Context(), js); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := topology.EnsureConsumer(t.Context(), js, service, topology.DefaultTakeoverBounds()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestUserRightsConfineStolenCredential(t *testing.T) {
	s := start(t)
	createStreamsAndConsumers(t, s)
	const change = "entail.changes.local.rbac%2Eauthorization%2Ek8s%2Eio.rolebindings.n0.b0"
	for _, service := range slices.Concat(topology.DurableServices(), topology.ReaderServices()) {
		thief := connect(t, s, service.Name)
		transform, err := json.Marshal(map[string]any{
			"name": topology.Changes, "subjects": []string{"entail.changes.>", "entail.barrier.*", "entail.wake.*"},
			"subject_transform": map[string]string{"src": topology.ResyncSubject(service.Name), "dest": change},
		})
		if err != nil {
			t.Fatal(err)
		}
		tries := map[string]string{
			"publishing a change": change, "publishing a target": strings.Replace(change, ".changes.", ".objects.", 1),
			"publishing a marker": topology.MarkerSubject("local", kinds.Stores().GroupResource), "publishing a barrier": topology.BarrierSubject("local"),
			"writing to another's inbox": topology.InboxPrefix(topology.Watcher) + ".x", "waking another": "entail.wake.watcher",
			"restoring a stream": "$JS.API.STREAM.RESTORE.ENTAIL_CHANGES", "another stream": "$JS.API.STREAM.CREATE.MINE",
			"reading any message":       "$JS.API.STREAM.MSG.GET.ENTAIL_CHANGES",
			"a durable of the old kind": "$JS.API.CONSUMER.DURABLE.CREATE.ENTAIL_CHANGES.mine", "all the account": "$JS.API.ACCOUNT.PURGE.ENTAIL",
		}
		for _, stream := range topology.StreamNames() {
			for _, verb := range []string{"CREATE", "UPDATE", "DELETE", "PURGE", "MSG.DELETE", "LEADER.STEPDOWN"} {
				tries[verb+" "+stream] = "$JS.API.STREAM." + verb + "." + stream
			}
		}
		for _, other := range topology.DurableServices() {
			if other.Name == service.Name {
				tries["deleting its own durable"] = "$JS.API.CONSUMER.DELETE.ENTAIL_CHANGES." + service.Name
				continue
			}
			for _, request := range []string{"CREATE", "DELETE", "MSG.NEXT", "UNPIN", "INFO", "PAUSE"} {
				tries[request+" "+other.Name] = "$JS.API.CONSUMER." + request + ".ENTAIL_CHANGES." + other.Name
			}
			tries["create "+other.Name+" otherwise"] = "$JS.API.CONSUMER.CREATE.ENTAIL_CHANGES." + other.Name + ".entail.changes.>"
			maps.Copy(tries, map[string]string{
				"a result of " + other.Name: "entail.results." + other.Name + ".x", "a letter of " + other.Name: "entail.deadletters." + other.Name + ".x",
				"an acknowledgement of " + other.Name: "$JS.ACK.ENTAIL_CHANGES." + other.Name + ".1.1.1.1.1",
			})
		}
		for what, subject := range tries {
			thief.mayNot(service.Name+": "+what, thief.publish(subject, transform))
		}
		for _, subject := range []string{"_INBOX.>", "_INBOX_watcher.>", "entail.>", "$JS.>", ">"} {
			thief.mayNot(service.Name+": listening on "+subject, func() error {
				_, err := thief.conn.SubscribeSync(subject)
				return err
			})
		}
	}
}

func TestReaderUserCannotPublish(t *testing.T) {
	s := start(t)
	createStreamsAndConsumers(t, s)
	for _, service := range topology.ReaderServices() {
		thief := connect(t, s, service.Name)
		for what, subject := range map[string]string{
			"a result": "entail.results." + service.Name + ".x", "a dead letter": "entail.deadletters." + service.Name + ".x",
			"a wake": topology.ResyncSubject(service.Name), "whose turn it is": topology.LeaseSubject(service.Name),
			"a pulse of another": topology.ProbeSubject(topology.TupleSync), "an acknowledgement": "$JS.ACK.ENTAIL_CHANGES." + service.Name + ".1.1.1.1.1",
			"anything else": "anything",
		} {
			thief.mayNot(service.Name+": "+what, thief.publish(subject, []byte("x")))
		}
	}
}

func TestUserCannotCreateConsumersWithoutBound(t *testing.T) {
	const bound = 1000
	s := start(t)
	createStreamsAndConsumers(t, s)
	thief, created := connect(t, s, topology.StoreSync), 0
	for err := error(nil); err == nil; created++ {
		if created > bound {
			t.Fatalf("got %d consumers, want an error before", created)
		}
		_, err = thief.js.CreateConsumer(t.Context(), topology.Changes, jetstream.ConsumerConfig{
			FilterSubject: "entail.changes.>", InactiveThreshold: time.Hour, // NATS deletes none during the test.
		})
		if code := jetstream.ErrorCode(10026); err != nil {
			var refused *jetstream.APIError
			if !errors.As(err, &refused) || refused.ErrorCode != code {
				t.Fatalf("got %v after %d consumers, want error %d", err, created, code)
			}
		}
	}
	for _, service := range topology.DurableServices() {
		if _, err := topology.EnsureConsumer(t.Context(), connect(t, s, service.Name).js, service, topology.DefaultTakeoverBounds()); err != nil {
			t.Errorf("the durable consumer of %s: %v", service.Name, err)
		}
	}
}

func TestServerRequiresPassword(t *testing.T) {
	s := start(t)
	for _, name := range natsauth.UserNames() {
		if conn, err := nats.Connect(s.ClientURL(), nats.UserInfo(name, "another")); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s comes in: %v", name, err)
			if conn != nil {
				conn.Close()
			}
		}
	}
	if text, err := os.ReadFile(shipped); err != nil || strings.Contains(string(text), `password: "`) {
		t.Errorf("a password is in the file, or %v", err)
	}
}
