package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuildHasVersionAndCommit(t *testing.T) {
	stamped := Build{Version: "v1.2.3", Revision: "abc", Modified: true, Go: "go1", Platform: "linux/arm64"}
	tests := map[string]struct {
		build Build
		want  string
	}{
		"stamped":         {stamped, "v1.2.3 abc modified go1 linux/arm64"},
		"without history": {Build{Version: "devel", Go: "go1", Platform: "linux/arm64"}, "devel go1 linux/arm64"},
	}
	for name, test := range tests {
		if got := test.build.String(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	var b Build
	b.readBuildInfo(&debug.BuildInfo{Main: debug.Module{Version: "v1.0.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
	}})
	if b != (Build{Version: "v1.0.0", Revision: "abc", Modified: true}) {
		t.Errorf("read %+v", b)
	}
	if got := CurrentBuild(); !strings.HasPrefix(got.Go, "go") || got.Platform == "" {
		t.Errorf("this is %+v", got)
	}
}
