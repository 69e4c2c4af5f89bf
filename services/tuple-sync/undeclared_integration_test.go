//go:build integration

package tuplesync_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// undeclared lists what the Store demo holds and nobody declares, by what becomes of it.
func undeclared(ctx context.Context, client tuplev1connect.TupleServiceClient) (map[tuplev1.Fate][]string, error) {
	found, request := map[tuplev1.Fate][]string{}, &tuplev1.ListUndeclaredTuplesRequest{Store: "demo", PageSize: 120}
	for {
		page, err := client.ListUndeclaredTuples(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, u := range page.GetTuples() {
			k := u.GetKey()
			line := fmt.Sprintf("%s#%s@%s %s", k.GetObject(), k.GetRelation(), k.GetUser(), strings.Join(u.GetRecordedBy(), ","))
			found[u.GetFate()] = append(found[u.GetFate()], strings.TrimSpace(line))
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return found, nil
		}
	}
}

func TestUndeclaredTuplesAreListedWithFate(t *testing.T) {
	b := newTestEnv(t)
	client := clientOf(b.serve())
	b.store("demo", first, second)
	id := b.synced("demo", docs)
	b.StartReflector()
	b.await(stores, "demo", "Synced")
	foreign := many(100, 250)
	for from := 0; from < len(foreign); from += 50 {
		b.write(id, foreign[from:from+50], nil)
	}
	want := func(what string, fate tuplev1.Fate, tuples ...string) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			got, err := undeclared(t.Context(), client)
			if err != nil {
				return err
			}
			slices.Sort(got[tuplev1.Fate_FATE_UNMANAGED])
			if !slices.Equal(got[tuplev1.Fate_FATE_UNMANAGED], foreign) || !slices.Equal(got[fate], tuples) || len(got) > 2 {
				return fmt.Errorf("%s: %.2000v", what, got)
			}
			return nil
		})
	}
	want("in step", tuplev1.Fate_FATE_UNMANAGED, foreign...)

	b.Kube.FailBefore(func(_ context.Context, op string) error {
		if strings.HasPrefix(op, "PATCH ") {
			return errCut
		}
		return nil
	})
	b.store("demo", first)
	want("taken out of the spec", tuplev1.Fate_FATE_TO_BE_REMOVED, second+" Store/demo")

	b.OpenFGA.FailBefore(func(_ context.Context, op string) error {
		if op == "Write" {
			return errCut
		}
		return nil
	})
	b.Kube.FailBefore(nil)
	want("on its way out", tuplev1.Fate_FATE_CONTESTED, second+" Store/demo")

	b.mend()
	want("gone", tuplev1.Fate_FATE_UNMANAGED, foreign...)
}
