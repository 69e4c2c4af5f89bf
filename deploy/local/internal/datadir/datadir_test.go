package datadir

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	dir, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func TestDirectoryHasOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first := open(t, path)
	_, err := Open(path)
	if err == nil || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), "--data-dir") {
		t.Fatalf("second Open = %v, want an error that names the owner and the way out", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestDirectoryIsPrivate(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "state"))
	info, err := os.Stat(dir.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode = %v, want 0700", info.Mode().Perm())
	}
}

func TestWriteFileIsAtomicAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("a long old content"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "new" {
		t.Errorf("content = %q, %v, want new", content, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v, want 0600", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("directory holds %v, want the file alone", entries)
	}
}

func TestFailedWriteDoesNotLeaveFile(t *testing.T) {
	parent := t.TempDir()
	if err := os.MkdirAll(filepath.Join(parent, "taken", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(parent, "taken"), []byte("new")); err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	if entries, _ := os.ReadDir(parent); len(entries) != 1 {
		t.Errorf("directory holds %v, want what it held before", entries)
	}
}

func TestPortIsKeptAcrossRestarts(t *testing.T) {
	dir := open(t, t.TempDir())
	first := listenOn(t, dir)
	port := portOf(first)
	_ = first.Close()
	if again := portOf(listenOn(t, dir)); again != port {
		t.Errorf("port after a restart = %d, want %d", again, port)
	}
}

func TestPortInUseIsReplaced(t *testing.T) {
	dir := open(t, t.TempDir())
	thief, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	if err := WriteFile(dir.Path("port"), []byte(strconv.Itoa(portOf(thief)))); err != nil {
		t.Fatal(err)
	}
	port := portOf(listenOn(t, dir))
	if port == portOf(thief) {
		t.Fatalf("port %d is held twice", port)
	}
	if dir.lastPort() != port {
		t.Errorf("noted port = %d, want %d", dir.lastPort(), port)
	}
}

func TestDamagedPortFileIsIgnored(t *testing.T) {
	for name, note := range map[string]string{"empty": "", "text": "port", "too large": "70000", "negative": "-1"} {
		t.Run(name, func(t *testing.T) {
			dir := open(t, t.TempDir())
			if err := WriteFile(dir.Path("port"), []byte(note)); err != nil {
				t.Fatal(err)
			}
			listenOn(t, dir)
		})
	}
}

func TestPortInUseErrorHasRemedy(t *testing.T) {
	dir := open(t, t.TempDir())
	thief, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	_, err = dir.Listen(net.IPv4(127, 0, 0, 1), portOf(thief))
	if err == nil || !strings.Contains(err.Error(), "is in use") || !strings.Contains(err.Error(), "--port") {
		t.Errorf("Listen = %v, want an error that says what to do", err)
	}
}

func TestLogRotatesWhenLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 2 {
		log, err := OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = log.WriteString("line\n")
		_ = log.Close()
	}
	if content, _ := os.ReadFile(path); string(content) != "line\nline\n" {
		t.Fatalf("log = %q, want both lines", content)
	}
	if err := os.Truncate(path, maxLogSize+1); err != nil {
		t.Fatal(err)
	}
	log, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if info, _ := log.Stat(); info.Size() != 0 {
		t.Errorf("size of the new log = %d, want 0", info.Size())
	}
	if _, err := os.Stat(path + ".old"); err != nil {
		t.Errorf("the old log is gone: %v", err)
	}
}

func listenOn(t *testing.T, dir *Dir) net.Listener {
	t.Helper()
	listener, err := dir.Listen(net.IPv4(127, 0, 0, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func portOf(listener net.Listener) int {
	return listener.Addr().(*net.TCPAddr).Port
}
