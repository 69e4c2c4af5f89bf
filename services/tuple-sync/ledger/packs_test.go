package ledger

import (
	"slices"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

func TestAPackedListIsUnpackedOnce(t *testing.T) {
	list := numbered(0, 3)
	slices.Reverse(list)
	written, read := newPacks(), newPacks()
	data, err := written.pack(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*packs{"who packed it": written, "another": read} {
		first, err := p.unpack(data)
		if err != nil || !slices.Equal(first, numbered(0, 3)) {
			t.Fatalf("%s reads %v, %v; want it in order", name, first, err)
		}
		again, err := p.unpack(slices.Clone(data))
		if err != nil || &again[0] != &first[0] {
			t.Errorf("%s unpacks it again, %v", name, err)
		}
	}
	if _, err := read.unpack([]byte("no list")); err == nil {
		t.Error("what is no list was read")
	}
}

func TestALongListOfTheViewIsReadOnce(t *testing.T) {
	p, long := newPacks(), declared(numbered(0, corev1alpha1.LongRecord+1))
	first, again, other := p.parse(long), p.parse(long), p.parse(slices.Clone(long))
	if !slices.Equal(first, tuple.ParseAll(long)) || &again[0] != &first[0] || &other[0] == &first[0] {
		t.Error("it is not the list that was read before")
	}
	if short := p.parse(long[:3]); len(short) != 3 || len(p.parse(nil)) > 0 {
		t.Errorf("of three tuples there are %d", len(short))
	}
}

func TestNotAllListsAreRemembered(t *testing.T) {
	p := newPacks()
	for i := range maxPacks + 10 {
		if _, err := p.pack([]tuple.Tuple{{ID: tuple.ID{Object: numbered(i, i+1)[0].Object}}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.lists.Keys()); n != maxPacks {
		t.Errorf("%d are remembered", n)
	}
}
