package main

import (
	"fmt"
	"os"
	"strings"
)

// slowTests holds the reason for each test that may be slow, by package and name.
type slowTests map[string]string

// readSlowTests reads lines of the form "PACKAGE TEST: reason". Lines that start with # are comments.
func readSlowTests(path string) (slowTests, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := slowTests{}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, found := strings.Cut(line, ": ")
		if !found || len(strings.Fields(name)) != 2 || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: got %q; write PACKAGE TEST: reason", path, i+1, line)
		}
		all[name] = reason
	}
	return all, nil
}

func (s slowTests) hasTest(pkg, test string) bool { return s[pkg+" "+test] != "" }
