package module

import (
	"strconv"
	"testing"
)

func TestPerStoreCacheIsBounded(t *testing.T) {
	asked := 0
	c := NewPerStoreCache(func(q int) (int, error) { asked++; return -q, nil })
	for i := range 2 * maxCached {
		if got, _ := c.Get(StoreKey(strconv.Itoa(i), ""), i); got != -i {
			t.Errorf("the answer to %d is %d", i, got)
		}
	}
	if c.kept.Len() != maxCached {
		t.Errorf("%d answers are kept", c.kept.Len())
	}
	last := StoreKey(strconv.Itoa(2*maxCached-1), "")
	if _, _ = c.Get(last, 2*maxCached-1); asked != 2*maxCached {
		t.Error("what is kept was asked again")
	}
	if got, _ := c.Get(last, 7); got != -7 {
		t.Errorf("the answer to another question is %d", got)
	}
}
