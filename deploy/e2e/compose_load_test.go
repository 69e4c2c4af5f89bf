//go:build compose

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
)

const (
	// declarers is how many declare at a time, pace how long each waits between two texts.
	declarers = 3
	pace      = 100 * time.Millisecond
	// kept is how many users a text names: who came earlier is withdrawn.
	kept = 20
)

// nothingIsLost strikes everything in turn while people go on declaring. Then it must be as they declared last.
func nothingIsLost(t *testing.T, m *machine) {
	t.Helper()
	config := m.config(t)
	config.QPS = -1 // There are many people.
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	stores := objects.Resource(resource("stores"))
	enough := make(chan struct{})
	var people sync.WaitGroup
	var all []*declarer
	for i := range declarers {
		d := newDeclarer(t, stores, fmt.Sprintf("load-%d", i))
		all = append(all, d)
		people.Go(func() { d.run(t.Context(), enough) })
	}
	for _, blow := range [][]string{
		{"kill", "tuple-sync"},
		{"restart", "nats"},
		{"kill", "watcher", "store-sync"},
		{"restart", "kubernetes"},
		{"kill", "openfga"},
	} {
		compose(t, blow...)
		start(t)
	}
	close(enough)
	people.Wait()
	client := tuplev1connect.NewTupleServiceClient(&http.Client{Transport: bearer(m.token(t))}, m.TupleService)
	for _, d := range all {
		d.check(t, client)
	}
}

// declarer declares tuples in a store of its own.
type declarer struct {
	stores dynamic.ResourceInterface
	name   string
	// users is how many there were until now: the last ones are declared.
	users int
	// refused counts what the API server did not take at once.
	refused int
}

func newDeclarer(t *testing.T, stores dynamic.ResourceInterface, name string) *declarer {
	t.Helper()
	store := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"coreModule": "module core\ntype user\ntype document\n  relations\n    define viewer: [user]\n",
	}}}
	store.SetAPIVersion("core.platform-mesh.io/v1alpha1")
	store.SetKind("Store")
	store.SetName(name)
	if _, err := stores.Create(t.Context(), store, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return &declarer{stores: stores, name: name}
}

// run declares one more user at a time. What the API server does not take, whoever asks again knows to be the same.
func (d *declarer) run(ctx context.Context, enough <-chan struct{}) {
	for {
		select {
		case <-enough:
			return
		case <-ctx.Done():
			return
		case <-time.After(pace):
		}
		d.users++
		for d.declare(ctx) != nil && ctx.Err() == nil {
			d.refused++
			select {
			case <-ctx.Done():
			case <-time.After(pace):
			}
		}
	}
}

func (d *declarer) declare(ctx context.Context) error {
	tuples := []map[string]string{}
	for i := max(0, d.users-kept); i < d.users; i++ {
		tuples = append(tuples, map[string]string{"object": "document:1", "relation": "viewer", "user": user(i)})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"tuples": tuples}})
	if err != nil {
		return err
	}
	_, err = d.stores.Patch(ctx, d.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func user(i int) string { return fmt.Sprintf("user:%d", i) }

// check asks about everybody whom it ever declared, and for tuples that nobody does.
func (d *declarer) check(t *testing.T, client tuplev1connect.TupleServiceClient) {
	t.Helper()
	// A client of OpenFGA looks its name up again after half a minute, and that may lead to an address of before.
	eventually(t, 2*soon, d.name+" is ready", func(ctx context.Context) error { return ready(ctx, d.stores, d.name) })
	if d.users <= kept {
		t.Fatalf("%s: only %d users were declared", d.name, d.users)
	}
	for i := range d.users {
		answer, err := client.Check(t.Context(), &tuplev1.CheckRequest{
			Store: d.name, Key: &tuplev1.TupleKey{Object: "document:1", Relation: "viewer", User: user(i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if declared := i >= d.users-kept; answer.GetAllowed() != declared {
			t.Errorf("%s: %s of %d is declared: %t, and may: %t", d.name, user(i), d.users, declared, answer.GetAllowed())
		}
	}
	more, err := client.ListUndeclaredTuples(t.Context(), &tuplev1.ListUndeclaredTuplesRequest{Store: d.name})
	if err != nil || len(more.GetTuples()) > 0 {
		t.Errorf("%s: nobody declares %v, %v", d.name, more.GetTuples(), err)
	}
	t.Logf("%s: %d users, of whom the API server did not take %d at once", d.name, d.users, d.refused)
}

// bearer is a token that goes with every request.
type bearer string

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	if b == "" {
		return nil, errors.New("no token")
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(request)
}
