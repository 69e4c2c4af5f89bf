//go:build !race

// The race detector is excluded: the test uses one goroutine, and would take minutes with it.

package iam_test

import (
	"context"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/iam/world"
	"github.com/entail-dev/entail/services/internal/seeds"
)

const (
	worlds    = 200
	changes   = 12
	states    = 3
	questions = 40
)

// OpenFGA with the model and the tuples of this package must decide as the declared objects require, and so must the
// index.
func TestOpenFGAAndIndexEqualNaiveAuthorizer(t *testing.T) {
	server, err := embedded.StartOpenFGA(embedded.OpenFGAConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	client, err := fga.Dial(fga.Config{Target: server.GRPCTarget()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	asked, allowed := 0, 0
	for seed := range seeds.SeedRange(t, worlds) {
		w := world.NewRandom(seed)
		s := newOpenFGATestStore(t, client)
		for range states {
			s.sync(t, w)
			n := world.NewNaiveAuthorizer(w)
			x := index(w)
			for range questions {
				q := w.RandomRequest()
				want := n.Allows(q)
				if got := s.ask(t, x, q); got != want {
					t.Fatalf("world %d: OpenFGA %v, naive %v for %+v", seed, got, want, q)
				}
				if _, got := x.Decide(asIndexed(q)); got != want {
					t.Fatalf("world %d: index %v, OpenFGA %v for %+v", seed, got, want, q)
				}
				asked++
				if want {
					allowed++
				}
			}
			for range changes {
				w.ChangeRandomly()
			}
		}
	}
	t.Logf("%d questions, %d allowed", asked, allowed)
	if allowed < asked/20 || allowed > asked/2 {
		t.Error("too few or too many queries are allowed")
	}
}

// openFGATestStore is an OpenFGA store with its model and tuples.
type openFGATestStore struct {
	client    *fga.Client
	id, model string
	types     []byte
	tuples    map[iam.Tuple]bool
}

func newOpenFGATestStore(t *testing.T, client *fga.Client) *openFGATestStore {
	t.Helper()
	id, err := client.CreateStore(t.Context(), "iam")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.DeleteStore(context.WithoutCancel(t.Context()), id) })
	return &openFGATestStore{client: client, id: id, tuples: map[iam.Tuple]bool{}}
}

// sync writes the differences between the store and the world to the store.
func (s *openFGATestStore) sync(t *testing.T, w *world.World) {
	t.Helper()
	m := &openfgav1.AuthorizationModel{SchemaVersion: typesystem.SchemaVersion1_2, TypeDefinitions: objects(w).Registry.TypeDefinitions()}
	types, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err == nil && string(types) != string(s.types) {
		s.types = types
		s.model, err = s.client.WriteModel(t.Context(), s.id, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := map[iam.Tuple]bool{}
	for object, tuples := range desiredTuplesByObject(w) {
		for _, tuple := range tuples {
			if tuple.Object != object {
				t.Fatalf("%s wants %+v", object, tuple)
			}
			want[tuple] = true
		}
	}
	var add, remove []*openfgav1.TupleKey
	for tuple := range want {
		if !s.tuples[tuple] {
			add = append(add, key(tuple))
		}
	}
	for tuple := range s.tuples {
		if !want[tuple] {
			remove = append(remove, key(tuple))
		}
	}
	if err := s.client.Write(t.Context(), s.id, s.model, add, remove); err != nil {
		t.Fatal(err)
	}
	s.tuples = want
}

func (s *openFGATestStore) ask(t *testing.T, x *authz.Index, q world.Request) bool {
	t.Helper()
	c, ok := x.ToOpenFGACheck(asIndexed(q))
	if !ok {
		return false
	}
	for _, part := range c.SplitContext(len(c.Context) - len(q.Groups)/2) { // Splits some of the checks.
		if s.check(t, part) {
			return true
		}
	}
	return false
}

func (s *openFGATestStore) check(t *testing.T, c iam.OpenFGACheck) bool {
	t.Helper()
	request := &openfgav1.CheckRequest{
		StoreId: s.id, AuthorizationModelId: s.model, ContextualTuples: &openfgav1.ContextualTupleKeys{},
		TupleKey: &openfgav1.CheckRequestTupleKey{User: c.User, Relation: c.Relation, Object: c.Object},
	}
	for _, tuple := range c.Context {
		request.ContextualTuples.TupleKeys = append(request.ContextualTuples.TupleKeys, key(tuple))
	}
	answer, err := s.client.Check(t.Context(), request)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return answer.GetAllowed()
}

func key(t iam.Tuple) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{User: t.User, Relation: t.Relation, Object: t.Object}
}

func asIndexed(q world.Request) authz.Query {
	return authz.Query{
		Subject:    authz.Subject{User: q.User, Account: q.Account, Groups: q.Groups},
		Permission: q.Permission, Type: q.Type, Namespace: q.Namespace, Name: q.Name, RequireExists: q.RequireExists,
		Parent: authz.Scope{Type: q.ParentType, Ref: authz.Ref{Name: q.ParentName}},
	}
}

// index returns an index loaded with a world.
func index(w *world.World) *authz.Index {
	x := authz.New(w.IsTrusted)
	x.BulkLoad(func() { loadIndex(x, w) })
	return x
}

func loadIndex(x *authz.Index, w *world.World) {
	for _, o := range w.Bindings {
		x.SetBinding(o.Namespace, o.Name, o)
	}
	for _, o := range w.Memberships {
		x.SetMembership(o.Namespace, o.Name, o)
	}
	for _, o := range w.Roles {
		x.SetRole(o.Namespace, o.Name, o.DeepCopy())
	}
	for _, o := range w.Groups {
		x.SetGroup(o.Namespace, o.Name, o)
	}
	for _, o := range w.Users {
		x.SetUser(o.Name, o)
	}
	for _, o := range w.Accounts {
		x.SetServiceAccount(o.Name, o)
	}
	for _, o := range w.Targets {
		if t, alive := targetOf(o); alive {
			x.SetTarget(o.Type, o.Namespace, o.Name, &t)
		}
	}
	for _, o := range w.Resources {
		x.SetProtectedResource(o.Name, o)
	}
}
