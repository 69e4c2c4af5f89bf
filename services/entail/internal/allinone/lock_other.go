//go:build !unix

package allinone

// lockState does nothing on this platform.
func lockState(string) (unlock func(), err error) { return func() {}, nil }
