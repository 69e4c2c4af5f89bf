package filewatch

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// together joins the contents of files. It returns an error unless all contents are equal.
func together(contents ...[]byte) (string, error) {
	for _, content := range contents {
		if !bytes.Equal(content, contents[0]) {
			return "", errors.New("they do not fit together")
		}
	}
	return string(contents[0]), nil
}

func TestFilesAreReloadedWhenTheyChange(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	written := time.Now()
	write := func(path, content string) {
		t.Helper()
		written = written.Add(time.Second)
		if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, written, written)); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if _, err := Open(logger, together, one); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("opened what is not there: %v", err)
	}
	write(one, "a")
	write(two, "b")
	if _, err := Open(logger, together, one, two); err == nil || !strings.Contains(err.Error(), one+", "+two+": they do not fit together") {
		t.Fatalf("got %v", err)
	}
	write(two, "a")
	files, err := Open(logger, together, one, two)
	if err != nil || files.Get() != "a" || log.Len() > 0 {
		t.Fatalf("got %q, %v, %s", files.Get(), err, &log)
	}
	write(one, "b")
	if got := files.Get(); got != "a" || !strings.Contains(log.String(), "stays in use") {
		t.Errorf("half changed: %q, %s", got, &log)
	}
	log.Reset()
	if got := files.Get(); got != "a" || log.Len() > 0 {
		t.Errorf("second read: got %q and log %s, want no second warning", got, &log)
	}
	write(two, "b")
	if got := files.Get(); got != "b" {
		t.Errorf("changed: %q", got)
	}
	if err := os.Remove(one); err != nil {
		t.Fatal(err)
	}
	if got := files.Get(); got != "b" {
		t.Errorf("gone: %q", got)
	}
}
