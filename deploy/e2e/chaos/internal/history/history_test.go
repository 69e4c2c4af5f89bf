package history_test

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
)

func TestEntriesOfManyAreWholeLinesWithTimes(t *testing.T) {
	var out bytes.Buffer
	h := history.New(&out)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { h.Addf(history.Violation, "store %s holds %d tuples", "store-0", 7) })
	}
	all.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 21 || !strings.HasPrefix(lines[0], "begun 2") {
		t.Fatalf("%d lines, the first is %q", len(lines), lines[0])
	}
	entry := regexp.MustCompile(`^ +\d+\.\d{3} VIOLATION store store-0 holds 7 tuples$`)
	for _, line := range lines[1:] {
		if !entry.MatchString(line) {
			t.Errorf("an entry is %q", line)
		}
	}
}
