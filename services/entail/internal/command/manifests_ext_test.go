package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/devserver"
)

func TestManifestsPrintsYAMLStream(t *testing.T) {
	list := run(t, nil, "manifests")
	files := strings.Fields(list.out)
	if list.code != 0 || !slices.Contains(files, "samples/store.yaml") || !slices.Contains(files, "base/watcher/rbac.yaml") {
		t.Fatalf("got %+v", list)
	}
	crds := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return !strings.HasPrefix(name, "crd/") })
	got := run(t, nil, "manifests", "crd", "samples/store.yaml")
	objects, err := devserver.DecodeManifest([]byte(got.out))
	if err != nil || got.code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
	}
	if kinds["CustomResourceDefinition"] != len(crds) || kinds["Store"] != 1 || kinds["AuthorizationModel"] != 1 {
		t.Errorf("printed are %v, want the %d CRDs and the sample", kinds, len(crds))
	}
}

func TestManifestsWritesNewFilesOnly(t *testing.T) {
	dir := t.TempDir()
	if got := run(t, nil, "manifests", "--dir", dir); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	for name := range strings.FieldsSeq(run(t, nil, "manifests").out) {
		written, err := os.ReadFile(filepath.Join(dir, name))
		kept, _ := os.ReadFile(filepath.Join("../../../../deploy", name))
		if err != nil || string(written) != string(kept) {
			t.Errorf("%s is not as in the repository: %v", name, err)
		}
	}
	if got := run(t, nil, "manifests", "--dir", dir); got.code != 1 || !strings.Contains(got.err, "choose a --dir without it") {
		t.Errorf("a second time: %+v", got)
	}
}

func TestManifestsAndSettingsRefuseWrongUsage(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"a path that is not there": {[]string{"manifests", "crds"}, []string{`no manifest is at "crds"`}},
		"a pattern that is none":   {[]string{"manifests", "[", "crd"}, []string{`no manifest is at "["`}},
		"a path to write":          {[]string{"manifests", "crd", "--dir", "x"}, []string{"leave the paths out"}},
		"an unknown service": {
			[]string{"up", "--set", "nobody.workers=1"}, []string{`no service "nobody"`, "watcher, store-sync, tuple-sync, implied-role"},
		},
		"no service":      {[]string{"up", "--set", "workers=1"}, []string{`no service "workers"`, "SERVICE.FLAG=VALUE"}},
		"an unknown flag": {[]string{"up", "--set", "tuple-sync.allow-members=true"}, []string{"tuple-sync has no flag", "allow-member-tuples-enabled"}},
		"a value that is none": {
			[]string{"up", "--set", "tuple-sync.workers=many"}, []string{"tuple-sync", "workers", `"many"`},
		},
		"no value":                {[]string{"up", "--set", "tuple-sync.workers"}, []string{"tuple-sync.workers=VALUE"}},
		"what up decides":         {[]string{"up", "--set", "watcher.cluster=x"}, []string{"--cluster", "`entail up` sets --"}},
		"what up decides of NATS": {[]string{"up", "--set", "watcher.nats-url=x"}, []string{"--nats-url", "`entail up` sets --"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, test.args...)
			if got.code != 2 {
				t.Errorf("got %+v, want exit code 2", got)
			}
			for _, want := range test.want {
				if !strings.Contains(got.err, want) {
					t.Errorf("said is %q, want %q in it", got.err, want)
				}
			}
		})
	}
}
