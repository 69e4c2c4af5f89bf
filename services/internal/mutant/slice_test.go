package mutant

import (
	"fmt"
	"slices"
	"testing"
)

func TestSelectSliceCoversEachNameOnce(t *testing.T) {
	for count := 1; count <= 20; count++ {
		names := make([]string, count)
		for i := range names {
			names[i] = fmt.Sprintf("mutant %02d", i)
		}
		for n := 1; n <= count; n++ {
			var all []string
			for i := 1; i <= n; i++ {
				selected, err := selectSlice(names, fmt.Sprintf("%d/%d", i, n))
				if err != nil {
					t.Fatal(err)
				}
				if len(selected) < count/n || len(selected) > count/n+1 {
					t.Errorf("slice %d/%d of %d names: got %d names, want an equal share", i, n, count, len(selected))
				}
				all = append(all, selected...)
			}
			if slices.Sort(all); !slices.Equal(all, names) {
				t.Errorf("%d slices of %d names: got %q together, want each name once", n, count, all)
			}
		}
	}
}

func TestSelectSliceIsIndependentOfOrder(t *testing.T) {
	const want = "[b d]"
	for _, names := range [][]string{{"a", "b", "c", "d"}, {"d", "c", "b", "a"}} {
		if got, err := selectSlice(names, "2/2"); err != nil || fmt.Sprint(got) != want {
			t.Errorf("of %q: got %v and error %v, want %s", names, got, err, want)
		}
	}
}

func TestSelectSliceWithoutValueSelectsAll(t *testing.T) {
	if got, err := selectSlice([]string{"b", "a"}, ""); err != nil || fmt.Sprint(got) != "[a b]" {
		t.Errorf("got %v and error %v, want [a b]", got, err)
	}
}

func TestSelectSliceRejectsBadValues(t *testing.T) {
	for _, value := range []string{"1", "/", "1/", "/2", "0/2", "3/2", "-1/2", "a/b", "1/2/3", " 1/2", "1/0", "0/0", "1.5/2", "4/4", "1/4", "1/99999999999999999999"} {
		if got, err := selectSlice([]string{"a", "b", "c"}, value); err == nil {
			t.Errorf("%q: got %v, want an error", value, got)
		}
	}
	if got, err := selectSlice(nil, "1/1"); err == nil {
		t.Errorf("of no names: got %v, want an error", got)
	}
}
