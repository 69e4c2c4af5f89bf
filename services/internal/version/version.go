// Package version tells which build a program is.
package version

import (
	"runtime"
	"runtime/debug"
)

// The linker sets these for scripts/build.sh; else the toolchain's record of the build counts.
//
//nolint:gochecknoglobals // The linker can set nothing else.
var number, revision, modified string

// Build is what a program was made from, and with.
type Build struct {
	Version string `json:"version"`
	// Revision is the commit; Modified means that there was more than is committed.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Current is the build of this program.
func Current() Build {
	b := Build{Version: number, Revision: revision, Modified: modified != "", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && b.Version == "" {
		b.read(info)
	}
	return b
}

func (b *Build) read(info *debug.BuildInfo) {
	b.Version = info.Main.Version
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
}

// String is one line for people.
func (b Build) String() string {
	s := b.Version
	if b.Revision != "" {
		s += " " + b.Revision
	}
	if b.Modified {
		s += " modified"
	}
	return s + " " + b.Go + " " + b.Platform
}
