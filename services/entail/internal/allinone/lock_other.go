//go:build !unix

package allinone

// lock does nothing on this platform.
func lock(string) (unlock func(), err error) { return func() {}, nil }
