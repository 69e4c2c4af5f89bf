package fga_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/fga"
)

func TestReadTuplePageReturnsNextToken(t *testing.T) {
	everyDatastore(t, func(t *testing.T, client *fga.Client) {
		store := storeWithModel(t, client)
		mustWrite(t, client, store, viewers(250), nil)
		var got []string
		var sizes []int
		for token := ""; ; {
			page, next, err := client.ReadTuplePage(t.Context(), store, 120, token)
			if err != nil {
				t.Fatal(err)
			}
			for _, tuple := range page {
				got = append(got, fmt.Sprint(tuple.GetKey().GetObject(), tuple.GetKey().GetUser()))
			}
			sizes = append(sizes, len(page))
			if token = next; token == "" {
				break
			}
		}
		slices.Sort(got)
		if !slices.Equal(sizes, []int{100, 100, 50}) || len(slices.Compact(got)) != 250 {
			t.Errorf("pages of %v, %d tuples", sizes, len(got))
		}
		if page, next, err := client.ReadTuplePage(t.Context(), unknown, 7, ""); len(page) > 0 || next != "" || err != nil {
			t.Errorf("an unknown store holds %v, %q, %v", page, next, err)
		}
	})
}
