package ledger

import (
	"slices"
	"testing"

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
