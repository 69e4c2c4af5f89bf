package rpc_test

import (
	"fmt"

	"github.com/entail-dev/entail/services/internal/rpc"
)

func ExamplePage() {
	fruit := []string{"apple", "cherry", "fig", "plum", "quince"} // sorted by key
	for token := ""; ; {
		page, next, err := rpc.Page(fruit, func(s string) string { return s }, 2, token)
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
