// Command sbom writes the bill of materials of programs in the form of CycloneDX: what the linker
// recorded in each of them, so what is really in it. The same programs give the same bytes.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := write(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// document is the part of CycloneDX 1.6 that is known of a Go program.
type document struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl,omitempty"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func write(out io.Writer, programs []string) error {
	if len(programs) == 0 {
		return errors.New("which programs? sbom PROGRAM [PROGRAM]")
	}
	doc := document{Format: "CycloneDX", Spec: "1.6", Version: 1}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return fmt.Errorf("reading what %s is made of: %w", program, err)
		}
		doc.add(filepath.Base(program), info)
	}
	order := func(a, b component) int { return strings.Compare(a.Ref, b.Ref) }
	slices.SortFunc(doc.Components, order)
	doc.Components = slices.CompactFunc(doc.Components, func(a, b component) bool { return a.Ref == b.Ref })
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(doc)
}

// add enters a program and each module in it. A module of this repository has no version but the program's.
func (d *document) add(name string, info *buildinfo.BuildInfo) {
	self := dependency{Ref: "program:" + name}
	modules := []component{module("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if !strings.HasPrefix(m.Path, ".") { // A directory beside it, by replace.
			modules = append(modules, module(m.Path, m.Version))
		}
	}
	for _, m := range modules {
		self.DependsOn = append(self.DependsOn, m.Ref)
	}
	d.Components = append(append(d.Components, component{Type: "application", Ref: self.Ref, Name: name}), modules...)
	d.Dependencies = append(d.Dependencies, self)
}

func module(path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}
