//go:build compose

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
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
	// pace is the time between two declarations of a declarer.
	pace = 100 * time.Millisecond
	// kept is the number of users in a declaration; earlier users are removed.
	kept = 20
)

// load is a set of declarers that run concurrently.
type load struct {
	people []*declarer
	enough chan struct{}
	busy   sync.WaitGroup
}

// loaded starts a number of declarers.
func loaded(t *testing.T, stores dynamic.ResourceInterface, people int) *load {
	t.Helper()
	l := &load{enough: make(chan struct{})}
	for i := range people {
		d := newDeclarer(t, stores, fmt.Sprintf("load-%d", i))
		l.people = append(l.people, d)
		l.busy.Go(func() { d.run(t.Context(), l.enough) })
	}
	return l
}

// follow waits until a declaration of now or later is applied, for every declarer.
func (l *load) follow(t *testing.T, client tuplev1connect.TupleServiceClient, what string) {
	t.Helper()
	for _, d := range l.people {
		first := d.users.Load()
		eventually(t, soon, d.name+": "+what, func(ctx context.Context) error { return d.keepsUp(ctx, client, first) })
	}
}

// stop stops the declarers, and requires that their last declarations are applied.
func (l *load) stop(t *testing.T, client tuplev1connect.TupleServiceClient) {
	t.Helper()
	close(l.enough)
	l.busy.Wait()
	for _, d := range l.people {
		d.check(t, client)
	}
}

// declarer declares tuples in its own store.
type declarer struct {
	stores dynamic.ResourceInterface
	name   string
	// users counts the users so far; the last ones are declared.
	users atomic.Int64
	// refused counts the requests that the API server did not accept.
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

// run declares one more user at a time. It repeats a failed request unchanged, because the API server may have accepted
// it.
func (d *declarer) run(ctx context.Context, enough <-chan struct{}) {
	for {
		select {
		case <-enough:
			return
		case <-ctx.Done():
			return
		case <-time.After(pace):
		}
		for d.declare(ctx, d.users.Load()+1) != nil && ctx.Err() == nil {
			d.refused++
			select {
			case <-ctx.Done():
			case <-time.After(pace):
			}
		}
		d.users.Add(1)
	}
}

// declare declares the last of the first users users.
func (d *declarer) declare(ctx context.Context, users int64) error {
	tuples := []map[string]string{}
	for i := max(0, users-kept); i < users; i++ {
		tuples = append(tuples, map[string]string{"object": "document:1", "relation": "viewer", "user": user(i)})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"tuples": tuples}})
	if err != nil {
		return err
	}
	_, err = d.stores.Patch(ctx, d.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func user(i int64) string { return fmt.Sprintf("user:%d", i) }

// may reports whether a user is a viewer.
func (d *declarer) may(ctx context.Context, client tuplev1connect.TupleServiceClient, i int64) (bool, error) {
	answer, err := client.Check(ctx, &tuplev1.CheckRequest{
		Store: d.name, Key: &tuplev1.TupleKey{Object: "document:1", Relation: "viewer", User: user(i)},
	})
	return answer.GetAllowed(), err
}

// keepsUp checks a user that was declared some time ago, stays declared for some time, and came after the given number
// of users.
func (d *declarer) keepsUp(ctx context.Context, client tuplev1connect.TupleServiceClient, after int64) error {
	asked := d.users.Load() - kept/4
	if asked < after {
		return fmt.Errorf("%d users are declared, of whom %d were before", asked, after)
	}
	allowed, err := d.may(ctx, client, asked)
	if err == nil && !allowed {
		err = fmt.Errorf("%s may not yet", user(asked))
	}
	return err
}

// check checks every user that was ever declared, and requires that no undeclared tuple exists.
func (d *declarer) check(t *testing.T, client tuplev1connect.TupleServiceClient) {
	t.Helper()
	eventually(t, soon, d.name+" is ready", func(ctx context.Context) error { return ready(ctx, d.stores, d.name) })
	users := d.users.Load()
	if users <= kept {
		t.Fatalf("%s: only %d users were declared", d.name, users)
	}
	for i := range users {
		allowed, err := d.may(t.Context(), client, i)
		if err != nil {
			t.Fatal(err)
		}
		if declared := i >= users-kept; allowed != declared {
			t.Errorf("%s: %s of %d is declared: %t, and may: %t", d.name, user(i), users, declared, allowed)
		}
	}
	more, err := client.ListUndeclaredTuples(t.Context(), &tuplev1.ListUndeclaredTuplesRequest{Store: d.name})
	if err != nil || len(more.GetTuples()) > 0 {
		t.Errorf("%s: nobody declares %v, %v", d.name, more.GetTuples(), err)
	}
	t.Logf("%s: %d users, of whom the API server did not take %d at once", d.name, users, d.refused)
}

// answeredMeanwhile sends checks while do runs, and requires that all are answered.
func answeredMeanwhile(t *testing.T, m *machine, do func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		ticks := time.NewTicker(pace)
		defer ticks.Stop()
		var refused error
		asked := 0
		for ; ; asked++ {
			select {
			case <-ctx.Done():
				if asked < 10 {
					refused = errors.Join(refused, fmt.Errorf("only %d questions were asked", asked))
				}
				done <- refused
				return
			case <-ticks.C:
				refused = errors.Join(refused, answers(t.Context(), m, "user:anne editor document:roadmap", true))
			}
		}
	}()
	do()
	end()
	if err := <-done; err != nil {
		t.Errorf("not answered meanwhile: %v", err)
	}
}

// bearer is a transport that adds a token to every request.
type bearer string

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	if b == "" {
		return nil, errors.New("no token")
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(request)
}
