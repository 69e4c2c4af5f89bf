package rpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"pgregory.net/rapid"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
)

func identity(s string) string { return s }

func newReviewedRequest(size int32, token string) PageSizeRequest {
	return &storev1.ListStoresRequest{PageSize: size, PageToken: token}
}

// sortedKeys draws distinct keys in order, including empty and unusual ones.
func sortedKeys(t *rapid.T) []string {
	keys := rapid.SliceOfDistinct(rapid.String(), identity).Draw(t, "keys")
	slices.Sort(keys)
	return keys
}

func TestPaginateCoversAllItemsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := sortedKeys(t)
		size := rapid.Int32Range(1, 20).Draw(t, "size")
		var got []string
		for token := ""; ; {
			page, next, err := Paginate(keys, identity, newReviewedRequest(size, token))
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > int(size) || len(page) == 0 && len(keys) > 0 {
				t.Fatalf("page of %d items, size %d", len(page), size)
			}
			got = append(got, page...)
			if token = next; token == "" {
				break
			}
		}
		if !slices.Equal(got, keys) {
			t.Fatalf("pages give %q, want %q", got, keys)
		}
	})
}

func TestPaginateIsStableUnderChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := sortedKeys(t)
		stays := rapid.SliceOfN(rapid.Bool(), len(all), len(all)).Draw(t, "stays")
		var got []string
		for token, round := "", 0; ; round++ {
			there := rapid.SliceOfN(rapid.Bool(), len(all), len(all)).Draw(t, "there")
			var items []string
			for i, key := range all {
				if stays[i] || there[i] {
					items = append(items, key)
				}
			}
			page, next, err := Paginate(items, identity, newReviewedRequest(3, token))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page...)
			if token = next; token == "" {
				break
			}
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("pages repeat or disorder: %q", got)
		}
		for i, key := range all {
			if stays[i] && !slices.Contains(got, key) {
				t.Fatalf("%q always existed, but is on no page of %q", key, got)
			}
		}
	})
}

func TestPageSizesAreBounded(t *testing.T) {
	var items []string
	for i := range 3000 {
		items = append(items, fmt.Sprintf("%04d", i))
	}
	for size, want := range map[int32]int{-1: 100, 0: 100, 1: 1, 1000: 1000, 2000: 1000} {
		page, next, err := Paginate(items, identity, newReviewedRequest(size, ""))
		if err != nil || len(page) != want || next == "" {
			t.Errorf("size %d gives %d items, next %q, error %v; want %d items", size, len(page), next, err, want)
		}
	}
}

func TestPageTokenInvalidIsRefused(t *testing.T) {
	_, valid, err := Paginate([]string{"a", "demo"}, identity, newReviewedRequest(1, ""))
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"not base64":  "###",
		"too short":   "YWJj",
		"invented":    "YWJjZGVmZ2hpamtsbW5v",
		"cut":         valid[:len(valid)-2],
		"one changed": "B" + valid[1:],
		"endless":     strings.Repeat("A", 1<<20),
		"unsealed":    encodePageToken("a"),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Paginate([]string{"a", "demo"}, identity, newReviewedRequest(1, token))
			if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "page token") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func FuzzPageTokens(f *testing.F) {
	f.Add("", "")
	f.Add("demo", encodePageToken("demo"))
	f.Fuzz(func(t *testing.T, key, token string) {
		if got, ok := parsePageToken(encodePageToken(key)); len(key) < 2000 && (!ok || got != key) {
			t.Errorf("token of %q gives %q, %t", key, got, ok)
		}
		if got, ok := parsePageToken(token); ok && encodePageToken(got) != token {
			t.Errorf("key %q has the tokens %q and %q", got, token, encodePageToken(got))
		}
	})
}
