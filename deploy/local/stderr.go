package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// redirectStderr sends what libraries print on their own (the etcd client does)
// to the log, and keeps standard error for the few lines of this program:
// its errors, a crash, and a component that ends the process. A component
// that does so once the context has ended was stopped in the middle of its
// start: that is the end that was asked for.
func redirectStderr(ctx context.Context, logs *os.File) error {
	fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("duplicating standard error: %w", err)
	}
	own := os.NewFile(uintptr(fd), os.Stderr.Name())
	if err := unix.Dup2(int(logs.Fd()), int(os.Stderr.Fd())); err != nil {
		return fmt.Errorf("sending standard error to the log: %w", err)
	}
	os.Stderr = own
	klog.OsExit = func(code int) {
		if ctx.Err() != nil {
			os.Exit(0) //nolint:forbidigo // As below.
		}
		fmt.Fprintf(own, "kube-local: a component gave up (see %s)\n", logs.Name())
		os.Exit(code) //nolint:forbidigo // It takes the place of klog's own.
	}
	return debug.SetCrashOutput(own, debug.CrashOptions{})
}
