//go:build !unix

package devserver

import "os/exec"

// detachChild does nothing on this system.
func detachChild(*exec.Cmd) {}

// tieChild does nothing on this system.
func tieChild(*exec.Cmd) {}

// guardChild does nothing on this system.
func guardChild(int) (release func(), err error) { return func() {}, nil }
