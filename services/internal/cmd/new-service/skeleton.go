package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

// templates have the names of the files that they become, as far as these are not named for the service.
//
//go:embed template
var templates embed.FS

// skeleton is the files of the service itself, and its contract.
func (s *service) skeleton(t tree) ([]file, error) {
	sums, err := t.read("services/internal/go.sum") // Of which `go mod tidy` keeps what is needed.
	if err != nil {
		return nil, err
	}
	files, own := []file{{s.dir("go.sum"), sums}}, map[string]bool{}
	err = fs.WalkDir(templates, "template", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := s.render(name)
		if own[f.path] {
			return fmt.Errorf("%q is taken: %s is in every service; choose another name", s.Name, f.path)
		}
		files, own[f.path] = append(files, f), true
		return err
	})
	return files, err
}

func (s *service) render(name string) (file, error) {
	text, err := templates.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	parsed, err := template.New(name).Parse(string(text))
	if err != nil {
		return file{}, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, s); err != nil {
		return file{}, err
	}
	f := file{s.place(strings.TrimSuffix(strings.TrimPrefix(name, "template/"), ".tmpl")), out.Bytes()}
	if strings.HasSuffix(f.path, ".go") {
		if f.data, err = format.Source(f.data); err != nil {
			return file{}, fmt.Errorf("formatting %s: %w", f.path, err)
		}
	}
	return f, nil
}

// place is where the file of a template belongs.
func (s *service) place(name string) string {
	switch name {
	case "service.proto":
		return path.Join("proto/entail", s.Package, "v1", s.Package+".proto")
	case "cmd/main.go":
		return s.dir(path.Join("cmd", s.Name, "main.go"))
	}
	if rest, ok := strings.CutPrefix(name, "service"); ok {
		return s.dir(s.Package + rest)
	}
	return s.dir(name)
}

func (s *service) dir(name string) string { return path.Join("services", s.Name, name) }
