package module

import (
	"strconv"
	"testing"
)

func TestOnlySoManyAnswersAreKept(t *testing.T) {
	c, asked := NewCache[int, int](), 0
	answer := func(q int) int { asked++; return -q }
	for i := range 2 * maxCached {
		if got := c.Get(StoreKey(strconv.Itoa(i), ""), i, answer); got != -i {
			t.Errorf("the answer to %d is %d", i, got)
		}
	}
	if c.kept.Len() != maxCached {
		t.Errorf("%d answers are kept", c.kept.Len())
	}
	last := StoreKey(strconv.Itoa(2*maxCached-1), "")
	if c.Get(last, 2*maxCached-1, answer); asked != 2*maxCached {
		t.Error("what is kept was asked again")
	}
	if got := c.Get(last, 7, answer); got != -7 {
		t.Errorf("the answer to another question is %d", got)
	}
}
