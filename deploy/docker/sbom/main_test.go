package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestSBOMListsEachModuleOnce(t *testing.T) {
	var doc document
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.2.3"},
		{Path: "example.org/ours", Version: "v0.0.0", Replace: &debug.Module{Path: "../ours"}},
		{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1"}},
	}}
	doc.add("one", info)
	want := []string{"pkg:golang/std@1.26.0", "pkg:golang/example.org/a@v1.2.3", "pkg:golang/example.org/fork@v1.0.1"}
	if got := doc.Dependencies[0]; got.Ref != "program:one" || !slices.Equal(got.DependsOn, want) {
		t.Errorf("got %+v, want %v", got, want)
	}
}

func TestSBOMIsDeterministic(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := write(&first, []string{program, program}); err != nil {
		t.Fatal(err)
	}
	if err := write(&second, []string{program, program}); err != nil || first.String() != second.String() {
		t.Errorf("%v, or two bills", err)
	}
	var doc document
	if err := json.Unmarshal(first.Bytes(), &doc); err != nil || doc.Format != "CycloneDX" || len(doc.Components) != 2 || doc.Components[1].Name == "" {
		t.Errorf("%v: %s", err, &first)
	}
}

func TestSBOMReportsFileThatIsNotGoProgram(t *testing.T) {
	if err := write(&bytes.Buffer{}, []string{"main.go"}); err == nil || !strings.Contains(err.Error(), "main.go") {
		t.Errorf("got %v", err)
	}
	if err := write(&bytes.Buffer{}, nil); err == nil {
		t.Error("no program, no error")
	}
}
