//go:build unix

package allinone

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockState prevents a second process from using the state in dir. The operating system releases the lock when this process
// ends, even after a crash. The file holds the process ID, for the error message.
func lockState(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, "pid")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := os.ReadFile(path) // The process ID only improves the message.
		return nil, errors.Join(fmt.Errorf("state in %s is in use by process %s: stop that one, or choose another --state-dir",
			dir, strings.TrimSpace(string(holder))), file.Close())
	}
	if err == nil {
		err = errors.Join(file.Truncate(0), overwriteFile(file, strconv.Itoa(os.Getpid())+"\n"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
	}
	return func() {
		_ = os.Remove(path)
		_ = file.Close()
	}, nil
}

func overwriteFile(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}
