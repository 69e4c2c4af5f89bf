package fga_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"golang.org/x/sync/errgroup"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fga"
)

// BenchmarkWrite measures the rate of full Write calls, which bounds the rate of every service.
func BenchmarkWrite(b *testing.B) {
	for _, durable := range []bool{true, false} {
		for _, stores := range []int{1, 100} {
			for _, callers := range []int{1, 4, 8} {
				b.Run(fmt.Sprintf("fsync=%v/stores=%d/callers=%d", durable, stores, callers), func(b *testing.B) {
					server, err := embedded.StartOpenFGA(embedded.OpenFGAConfig{File: filepath.Join(b.TempDir(), "openfga.db"), UnsafeNoFsync: !durable})
					if err != nil {
						b.Fatal(err)
					}
					defer server.Stop()
					client, err := fga.Dial(fga.Config{Target: server.GRPCTarget()})
					if err != nil {
						b.Fatal(err)
					}
					defer client.Close()
					writeFullCalls(b, client, prepareStores(b, client, stores), callers)
				})
			}
		}
	}
}

func prepareStores(b *testing.B, client *fga.Client, n int) []string {
	b.Helper()
	m, err := transformer.TransformDSLToProto(model)
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]string, n)
	for i := range ids {
		if ids[i], err = client.CreateStore(b.Context(), fmt.Sprintf("store-%d", i)); err != nil {
			b.Fatal(err)
		}
		if _, err := client.WriteModel(b.Context(), ids[i], m); err != nil {
			b.Fatal(err)
		}
	}
	return ids
}

// writeFullCalls makes b.N calls with a hundred new tuples each. It alternates between the stores.
func writeFullCalls(b *testing.B, client *fga.Client, stores []string, callers int) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	var next atomic.Int64
	b.ResetTimer()
	for range callers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return nil
				}
				if err := writeCall(ctx, client, stores[i%len(stores)], i); err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N*fga.DefaultMaxTuples)/b.Elapsed().Seconds(), "tuples/s")
}

func writeCall(ctx context.Context, client *fga.Client, store string, call int) error {
	tuples := make([]*openfgav1.TupleKey, fga.DefaultMaxTuples)
	for i := range tuples {
		tuples[i] = viewer(fmt.Sprintf("document:%d-%d", call, i), "user:anne")
	}
	return client.Write(ctx, store, "", tuples, nil)
}
