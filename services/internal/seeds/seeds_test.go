package seeds

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// failingTB is a failed test that records its log instead of printing it.
type failingTB struct {
	testing.TB
	cleanups []func()
	logged   []string
}

func (f *failingTB) Helper()                {}
func (f *failingTB) Failed() bool           { return true }
func (f *failingTB) Cleanup(cleanup func()) { f.cleanups = append(f.cleanups, cleanup) }
func (f *failingTB) Logf(format string, args ...any) {
	f.logged = append(f.logged, fmt.Sprintf(format, args...))
}

func TestSeedRangeBeginsWithEnvironmentSeed(t *testing.T) {
	for value, want := range map[string][]uint64{
		"":                     {0, 1, 2},
		"0":                    {0, 1, 2},
		"40":                   {40, 41, 42},
		"18446744073709551615": {1<<64 - 1, 0, 1},
	} {
		t.Setenv(variable, value)
		if got := slices.Collect(SeedRange(t, 3)); !slices.Equal(got, want) {
			t.Errorf("%s=%q: got %v, want %v", variable, value, got, want)
		}
	}
}

func TestParseSeedRejectsInvalidNumber(t *testing.T) {
	for _, value := range []string{"x", "-1", "1.5", " 1", "18446744073709551616"} {
		if got, err := parseSeed(value); err == nil {
			t.Errorf("%q: got %d, want an error", value, got)
		}
	}
}

func TestFirstSeedLogsSeedOnFailure(t *testing.T) {
	for value, want := range map[string]string{"": "", "40": "ENTAIL_SEED=40 repeats this"} {
		t.Setenv(variable, value)
		f := &failingTB{TB: t}
		FirstSeed(f)
		for _, cleanup := range f.cleanups {
			cleanup()
		}
		if got := strings.Join(f.logged, "; "); got != want {
			t.Errorf("%s=%q: logged %q, want %q", variable, value, got, want)
		}
	}
}
