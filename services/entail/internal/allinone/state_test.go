package allinone

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLockStateExcludesSecondProcess(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockState(dir); err == nil || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("a second lock: error %v", err)
	}
	unlock()
	again, err := lockState(dir)
	if err != nil {
		t.Fatalf("after the first is gone: %v", err)
	}
	again()
}

func TestLogsWriteFilesAndWarningsToTerminal(t *testing.T) {
	var terminal bytes.Buffer
	dir := t.TempDir()
	l := newLogs(dir, &terminal)
	log, err := l.openPartLogger("watcher")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("all is well")
	log.Warn("all is not well")
	if err := l.closeLogs(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "watcher.log"))
	if err != nil || strings.Count(string(file), "\n") != 2 || !json.Valid(file[:bytes.IndexByte(file, '\n')]) {
		t.Errorf("the file holds %q, error %v", file, err)
	}
	if got := terminal.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "all is not well") {
		t.Errorf("the terminal shows %q", got)
	}
}

func TestLogFileRotatesOnceWhenFull(t *testing.T) {
	file := &logFile{path: filepath.Join(t.TempDir(), "x.log")}
	if err := file.rotateFile(); err != nil {
		t.Fatal(err)
	}
	half := bytes.Repeat([]byte{'x'}, maxLogBytes/2+1)
	for range 3 {
		if _, err := file.Write(half); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.closeFile(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file.path, file.path + ".old"} {
		if info, err := os.Stat(path); err != nil || info.Size() != int64(len(half)) {
			t.Errorf("%s: %v, error %v", path, info, err)
		}
	}
}

func TestReadSampleObjectsSortsFiles(t *testing.T) {
	for _, path := range []string{"../../../../deploy/samples", BuiltIn} {
		objects, err := (sampleSource{path: path}).readSampleObjects()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range objects {
			got = append(got, o.GetKind()+"/"+o.GetName())
		}
		if !strings.Contains(strings.Join(got, " "), "ImpliedRoles/developer-writer Role/admin Role/developer Role/reviewer Role/writer Store/demo AuthorizationModel/demo-documents") {
			t.Errorf("%s: got %q", path, got)
		}
	}
}

func TestReadSampleObjectsRefusesInvalidManifests(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"not YAML":    {content: "a: b: c", want: "mapping values"},
		"no kind":     {content: "metadata: {name: x}", want: "document 1 lacks a kind or a name"},
		"no name":     {content: "{kind: A, metadata: {name: x}}\n---\nkind: Store", want: "document 2 lacks a kind or a name"},
		"far too big": {content: strings.Repeat("#", maxSample+1), want: "bytes are too many"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.yaml")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := (sampleSource{path: path}).readSampleObjects(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestCreatedSamplesHaveLastAppliedAnnotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(path, []byte("{apiVersion: v1, kind: A, metadata: {name: x}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := readManifest(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := annotateLastApplied(objects[0]); err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","kind":"A","metadata":{"name":"x"}}`
	if got := strings.TrimSpace(objects[0].GetAnnotations()[corev1.LastAppliedConfigAnnotation]); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSamplesIncludeOpenSearchOnlyIfItRuns(t *testing.T) {
	for _, path := range []string{"../../../../deploy/samples", BuiltIn} {
		for _, openSearch := range []bool{false, true} {
			objects, err := (sampleSource{path: path, openSearch: openSearch}).readSampleObjects()
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "OpenSearchCluster" })
			if found != openSearch {
				t.Errorf("%s, with OpenSearch %t: the sample is there: %t", path, openSearch, found)
			}
		}
	}
}
