package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// service is what there is to know of a new service. Templates are filled in with it.
type service struct {
	// Name is that of its folder, binary, durable and account: what-it-does.
	Name string
	// Package is Name as a package, and as that of its contract: whatitdoes.
	Package string
	// Type is Name in Go: WhatItDoes. Account is the same, not exported: whatItDoes.
	Type, Account string
	// Title is Name at the beginning of a sentence, Metric as a part of names of metrics.
	Title, Metric string
	// Root is the path of the repository, Go the version that modules are written in.
	Root, Go string
}

// maxName is the length of a label in DNS, which the name is part of.
const maxName = 63

func newService(t tree, name string) (service, error) {
	if len(name) > maxName || !regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`).MatchString(name) {
		return service{}, fmt.Errorf(
			"%.100q names no service: use lower-case words with hyphens between them, such as tuple-sync, %d letters at most", name, maxName)
	}
	s := service{Name: name, Package: strings.ReplaceAll(name, "-", ""), Title: capital(name), Metric: strings.ReplaceAll(name, "-", "_")}
	for word := range strings.SplitSeq(name, "-") {
		s.Type += capital(word)
	}
	s.Account = strings.ToLower(s.Type[:1]) + s.Type[1:]
	if why, err := s.taken(t); err != nil {
		return service{}, err
	} else if why != "" {
		return service{}, fmt.Errorf("%q is taken: %s; choose another name", name, why)
	}
	return s, s.readModule(t)
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// taken says what else has the name, or would in Go.
func (s *service) taken(t tree) (string, error) {
	if token.IsKeyword(s.Package) || slices.Contains([]string{"main", "init", "context", "testing"}, s.Package) {
		return fmt.Sprintf("no package can be named %s", s.Package), nil
	}
	for _, dir := range []string{"services", "services/internal", "deploy", "deploy/base", "proto/entail"} {
		entries, err := os.ReadDir(filepath.Join(string(t), dir))
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if strings.ReplaceAll(e.Name(), "-", "") == s.Package {
				return fmt.Sprintf("there is %s/%s", dir, e.Name()), nil
			}
		}
	}
	for dir, ident := range map[string]string{"services/internal/topology": s.Type, "services/internal/rbac": s.Account} {
		found, err := t.declares(dir, ident)
		if err != nil {
			return "", err
		}
		if found {
			return fmt.Sprintf("%s in %s is something else", ident, dir), nil
		}
	}
	return "", nil
}

// declares reports whether a package has a declaration of that name.
func (t tree) declares(dir, name string) (bool, error) {
	sources, err := filepath.Glob(filepath.Join(string(t), dir, "*.go"))
	if err != nil {
		return false, err
	}
	for _, source := range sources {
		parsed, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			return false, err
		}
		if parsed.Scope.Lookup(name) != nil {
			return true, nil
		}
		for _, i := range parsed.Imports {
			if imported(i) == name {
				return true, nil
			}
		}
	}
	return false, nil
}

func imported(i *ast.ImportSpec) string {
	if i.Name != nil {
		return i.Name.Name
	}
	path := strings.Trim(i.Path.Value, `"`)
	return path[strings.LastIndex(path, "/")+1:]
}

// readModule takes from the module of shared code what all modules have in common.
func (s *service) readModule(t tree) error {
	const path = "services/internal/go.mod"
	data, err := t.read(path)
	if err != nil {
		return err
	}
	found := regexp.MustCompile(`(?s)^module (\S+)/services/internal\n.*?\ngo (\S+)\n`).FindSubmatch(data)
	if found == nil {
		return fmt.Errorf("%s names no module and no version of Go as expected", path)
	}
	s.Root, s.Go = string(found[1]), string(found[2])
	return nil
}
