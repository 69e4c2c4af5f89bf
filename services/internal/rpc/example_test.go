package rpc_test

import (
	"fmt"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
)

func ExamplePaginate() {
	fruit := []string{"apple", "cherry", "fig", "plum", "quince"} // sorted by key
	for token := ""; ; {
		request := &storev1.ListStoresRequest{PageSize: 2, PageToken: token}
		page, next, err := rpc.Paginate(fruit, func(s string) string { return s }, request)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(page)
		if token = next; token == "" {
			return
		}
	}
	// Output:
	// [apple cherry]
	// [fig plum]
	// [quince]
}
