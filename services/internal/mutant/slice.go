package mutant

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sliceVariable is the environment variable that selects some of the mutants of each list. The value "2/4" selects
// every fourth mutant, beginning with the second. Without a value, all mutants run.
const sliceVariable = "ENTAIL_SLICE"

// selectSlice returns the names that slice selects, in order. The slices 1/n to n/n are disjoint and together contain
// all names. It returns an error if there are more slices than names, so that no slice is empty.
func selectSlice(names []string, slice string) ([]string, error) {
	names = slices.Sorted(slices.Values(names))
	if slice == "" {
		return names, nil
	}
	first, of, _ := strings.Cut(slice, "/")
	i, errFirst := strconv.ParseUint(first, 10, 16)
	n, errOf := strconv.ParseUint(of, 10, 16)
	switch {
	case errFirst != nil || errOf != nil || i < 1 || i > n:
		return nil, fmt.Errorf("%s=%q: want i/n with 1 <= i <= n, such as 2/4", sliceVariable, slice)
	case n > uint64(len(names)):
		return nil, fmt.Errorf("%s=%q: want at most %d slices, one per mutant", sliceVariable, slice, len(names))
	}
	var selected []string
	for at := int(i) - 1; at < len(names); at += int(n) {
		selected = append(selected, names[at])
	}
	return selected, nil
}
