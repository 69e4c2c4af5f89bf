//go:build !unix

package devserver

import "os/exec"

// detach does nothing on this system.
func detach(*exec.Cmd) {}

// tie does nothing on this system.
func tie(*exec.Cmd) {}

// guard does nothing on this system.
func guard(int) (release func(), err error) { return func() {}, nil }
