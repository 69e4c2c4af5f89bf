// Package datadir is the directory that holds all state of one kube-local.
// At most one process owns it; everything in it survives a kill at any
// moment, because files are replaced whole.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Dir is a data directory that this process owns.
type Dir struct {
	path string
	lock *os.File
}

// Open creates the directory when it is missing and takes its lock, which
// the kernel gives back however the process ends.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("creating data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock of data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another kube-local (process %s): "+
				"stop that one, or give this one another --data-dir", path, lockOwnerPID(path))
		}
		return nil, fmt.Errorf("locking data directory %s: %w", path, err)
	}
	dir := &Dir{path: path, lock: lock}
	if err := errors.Join(lock.Truncate(0), writePID(lock, os.Getpid())); err != nil {
		return nil, errors.Join(fmt.Errorf("noting the owner of %s: %w", path, err), dir.Close())
	}
	return dir, nil
}

// Path names a file in the directory.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Close gives the lock back.
func (d *Dir) Close() error {
	return d.lock.Close()
}

// WriteFile replaces a file as a whole, readable by its owner alone: readers
// see the old content or the new, never a part.
func WriteFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

func writePID(f *os.File, pid int) error {
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", pid), 0)
	return err
}

func lockOwnerPID(path string) string {
	pid, err := os.ReadFile(filepath.Join(path, "lock"))
	if err != nil || len(pid) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(pid))
}
