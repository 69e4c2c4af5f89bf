//go:build !unix

package devserver

import "os/exec"

// detachChild does nothing on this system.
func detachChild(*exec.Cmd) {}

// bindChildLifetime does nothing on this system.
func bindChildLifetime(*exec.Cmd) {}

// startChildGuard does nothing on this system.
func startChildGuard(int) (release func(), err error) { return func() {}, nil }
