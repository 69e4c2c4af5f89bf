package iam

import (
	"context"
	"slices"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/openfga/pkg/typesystem"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/fga"
)

const (
	worlds    = 200
	changes   = 12
	states    = 3
	questions = 40
)

// What OpenFGA answers by the model and the tuples of this package is what the declared objects say.
func TestOpenFGADecidesAsTheObjectsSay(t *testing.T) {
	server, err := devserver.StartOpenFGA(devserver.OpenFGAConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	client, err := fga.Dial(fga.Config{Target: server.Target()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	asked, allowed := 0, 0
	for seed := range uint64(worlds) {
		w := newWorld(seed)
		s := newStore(t, client)
		for range states {
			s.sync(t, w)
			n := newNaive(w)
			o := w.objects()
			for range questions {
				q := w.ask()
				want := n.allows(q)
				if got := s.ask(t, o, q); got != want {
					t.Fatalf("world %d: OpenFGA says %v, the objects say %v, to %+v", seed, got, want, q)
				}
				asked++
				if want {
					allowed++
				}
			}
			for range changes {
				w.change()
			}
		}
	}
	t.Logf("%d questions, %d allowed", asked, allowed)
	if allowed < asked/20 || allowed > asked/2 {
		t.Error("the questions do not tell much")
	}
}

// store is one of OpenFGA, with what it holds.
type store struct {
	client    *fga.Client
	id, model string
	types     []byte
	tuples    map[Tuple]bool
}

func newStore(t *testing.T, client *fga.Client) *store {
	t.Helper()
	id, err := client.CreateStore(t.Context(), "iam")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.DeleteStore(context.WithoutCancel(t.Context()), id) })
	return &store{client: client, id: id, tuples: map[Tuple]bool{}}
}

// sync brings it in step by writing differences.
func (s *store) sync(t *testing.T, w *world) {
	t.Helper()
	m := &openfgav1.AuthorizationModel{SchemaVersion: typesystem.SchemaVersion1_2, TypeDefinitions: w.objects().Registry.Types()}
	types, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err == nil && string(types) != string(s.types) {
		s.types = types
		s.model, err = s.client.WriteModel(t.Context(), s.id, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := map[Tuple]bool{}
	for object, tuples := range w.wanted() {
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

func (s *store) ask(t *testing.T, o *Objects, q request) bool {
	t.Helper()
	k, ok := o.Registry.Kind(q.typ)
	if !ok {
		return false
	}
	question := Question{Groups: q.groups, Permission: q.permission, Kind: k, Namespace: q.namespace}
	if q.name != "" {
		question.Object = Object(q.typ, q.namespace, q.name)
	}
	switch {
	case q.user != "":
		question.Subject = User(q.user)
	case q.account != "":
		question.Subject = ServiceAccount(q.account)
	}
	c, ok := o.Check(question, func(group string) bool { return slices.Contains(tokenGroups(), group) })
	if !ok {
		return false
	}
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

func key(t Tuple) *openfgav1.TupleKey {
	return &openfgav1.TupleKey{User: t.User, Relation: t.Relation, Object: t.Object}
}
