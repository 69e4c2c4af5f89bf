package input_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/entail/internal/input"
)

func TestReadFileOrStdinIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, []byte("of the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		file string
		most int64
		want string
	}{
		"a file":                 {file, 100, "of the file"},
		"a file over the bound":  {file, 6, "of the"},
		"standard input":         {"-", 100, "of the terminal"},
		"standard input over it": {"-", 2, "of"},
	} {
		if got, err := input.ReadFileOrStdin(strings.NewReader("of the terminal"), test.file, test.most); err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
	if _, err := input.ReadFileOrStdin(strings.NewReader(""), file+".other", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
