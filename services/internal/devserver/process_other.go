//go:build !unix

package devserver

import "os/exec"

// detach has no counterpart here.
func detach(*exec.Cmd) {}

// tie has no counterpart here.
func tie(*exec.Cmd) {}

// guard has no counterpart here.
func guard(int) (release func(), err error) { return func() {}, nil }
