package declared

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

func TestTupleListCacheUnpacksOnce(t *testing.T) {
	list := numbered(0, 3)
	slices.Reverse(list)
	written, read := newTupleListCache(), newTupleListCache()
	data, err := written.packTuples(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*tupleListCache{"who packed it": written, "another": read} {
		first, err := p.unpackTuples(data)
		if err != nil || !slices.Equal(first, numbered(0, 3)) {
			t.Fatalf("%s reads %v, %v; want it in order", name, first, err)
		}
		again, err := p.unpackTuples(slices.Clone(data))
		if err != nil || &again[0] != &first[0] {
			t.Errorf("%s unpacks it again, %v", name, err)
		}
	}
	if _, err := read.unpackTuples([]byte("no list")); err == nil {
		t.Error("what is no list was read")
	}
}

func TestTupleListCacheParsesLongListOnce(t *testing.T) {
	p, long := newTupleListCache(), toAPITuples(numbered(0, corev1alpha1.LongRecord+1))
	first, again, other := p.parseDeclaredList(long), p.parseDeclaredList(long), p.parseDeclaredList(slices.Clone(long))
	if !slices.Equal(first, tuple.ParseDeclaredList(long)) || &again[0] != &first[0] || &other[0] == &first[0] {
		t.Error("it is not the list that was read before")
	}
	if short := p.parseDeclaredList(long[:3]); len(short) != 3 || len(p.parseDeclaredList(nil)) > 0 {
		t.Errorf("of three tuples there are %d", len(short))
	}
}

func TestTupleListCacheSkipsShortLists(t *testing.T) {
	p := newTupleListCache()
	for i := range maxPacks + 10 {
		if _, err := p.packTuples(numbered(i, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.lists.Len(); n != maxPacks {
		t.Errorf("%d are remembered", n)
	}
}

func TestTupleListCacheIsBounded(t *testing.T) {
	p := newTupleListCache()
	large := numbered(0, 1)
	large[0].Context = strings.Repeat("c", maxPackBytes/4)
	for i, want := range []int{1, 2, 3, 3, 3} { // A fourth would take more than there is.
		p.cacheTuples(fmt.Sprint(i), large)
		if p.cacheTuples(fmt.Sprint(i), large); p.lists.Len() != want || p.bytes != want*cachedListSize("0", large) {
			t.Errorf("after %d there are %d, of %d bytes", i+1, p.lists.Len(), p.bytes)
		}
	}
}
