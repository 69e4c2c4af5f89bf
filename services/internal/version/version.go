// Package version returns the version of a program.
package version

import (
	"runtime"
	"runtime/debug"
)

// scripts/build.sh sets these variables through the linker. Otherwise the build info of the toolchain is used.
//
//nolint:gochecknoglobals // The linker can set nothing else.
var number, revision, modified string

// Build describes the build of a program.
type Build struct {
	Version string `json:"version"`
	// Revision is the commit. Modified means that the working tree had uncommitted changes.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// CurrentBuild returns the build of this program.
func CurrentBuild() Build {
	b := Build{Version: number, Revision: revision, Modified: modified != "", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && b.Version == "" {
		b.readBuildInfo(info)
	}
	return b
}

func (b *Build) readBuildInfo(info *debug.BuildInfo) {
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

// String returns one line for users.
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
