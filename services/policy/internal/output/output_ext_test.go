package output_test

import (
	"testing"

	"github.com/entail-dev/entail/services/policy/internal/output"
)

func TestWriteWithinLimitMeasuresOutput(t *testing.T) {
	t.Parallel()
	write := func(w *output.MeasuringWriter) {
		w.WriteText("ab", "", "c")
		if w.Size() != 3 {
			t.Errorf("size %d", w.Size())
		}
	}
	for limit, want := range map[int]string{-1: "abc", 3: "abc", 4: "abc", 2: "", 0: ""} {
		text, size := output.WriteWithinLimit(limit, write)
		if string(text) != want || size != 3 || (text == nil) != (want == "") {
			t.Errorf("with limit %d it is %q of %d", limit, text, size)
		}
	}
	if text, size := output.WriteWithinLimit(0, func(*output.MeasuringWriter) {}); text == nil || size != 0 {
		t.Errorf("nothing is %v of %d", text, size)
	}
}
