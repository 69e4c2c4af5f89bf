//go:build integration

package testenv

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/fga"
)

func TestOpenFGAPoolDeletesStores(t *testing.T) {
	makeStore := func(t *testing.T, client *fga.Client, name string) {
		t.Helper()
		if _, err := client.CreateStore(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]func(t *testing.T, o *OpenFGAServer){
		"as it was": func(*testing.T, *OpenFGAServer) {},
		"stopped":   func(_ *testing.T, o *OpenFGAServer) { o.Stop() },
		"restarted": func(t *testing.T, o *OpenFGAServer) { o.Stop(); o.Start(t) },
		"restored":  func(t *testing.T, o *OpenFGAServer) { o.Backup(t)() },
		"of many": func(t *testing.T, o *OpenFGAServer) {
			client := dial(t, o)
			for range 120 {
				makeStore(t, client, "kept")
			}
		},
	}
	for name, do := range cases {
		t.Run(name, func(t *testing.T) {
			var first *openFGAProcess
			t.Run("first", func(t *testing.T) {
				o := LazyOpenFGA(t)
				makeStore(t, o.Client(t), "kept")
				do(t, o)
				first = o.process
			})
			o := LazyOpenFGA(t)
			stores, err := o.Client(t).FindStores(t.Context(), "kept")
			if err != nil || len(stores) != 0 {
				t.Errorf("got %v, %v; want no store", stores, err)
			}
			if o.process != first {
				t.Error("the second test has another server")
			}
		})
	}
}

func TestOpenFGAPoolGivesServerToOneTest(t *testing.T) {
	one, other := LazyOpenFGA(t), LazyOpenFGA(t)
	if _, err := one.Client(t).CreateStore(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	if stores, err := other.Client(t).FindStores(t.Context(), "own"); err != nil || len(stores) != 0 {
		t.Errorf("got %v, %v; want no store", stores, err)
	}
}
