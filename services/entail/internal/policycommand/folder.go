package policycommand

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/input"
	"github.com/entail-dev/entail/services/policy/syntax"
)

const (
	// maxPolicyBytes bounds all files together. It exceeds the limit of a policy, so a file that was cut off is always
	// rejected.
	maxPolicyBytes = 33 << 20
	maxPolicyFiles = 10_000
)

// files holds the files at the given paths.
type files struct {
	policies []syntax.File
	// assertions holds files below folders that contain assertions instead of policies.
	assertions []syntax.File
}

// reader reads each file once, even if several names or links lead to it.
type reader struct {
	in     io.Reader
	seen   map[string]bool
	budget int64
	count  int
}

func newReader(in io.Reader) *reader {
	return &reader{in: in, seen: map[string]bool{}, budget: maxPolicyBytes}
}

// policyFiles reads the files of a policy.
func policyFiles(in io.Reader, paths []string) ([]syntax.File, error) {
	found, err := newReader(in).readFiles(paths)
	return found.policies, err
}

// readFiles reads files, and standard input for -. Below folders it reads every *.yaml and *.yml file that is not hidden.
func (r *reader) readFiles(paths []string) (files, error) {
	var found files
	for _, path := range paths {
		if err := r.readPath(path, &found); err != nil {
			return files{}, fmt.Errorf("%w: read policy: %w", exit.ErrUsage, err)
		}
	}
	return found, nil
}

func (r *reader) readPath(readPath string, found *files) error {
	if readPath != "-" {
		info, err := os.Stat(readPath)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return r.readNamedFolder(readPath, found)
		}
	}
	file, err := r.readFile(readPath)
	if err == nil && file.Name != "" {
		found.policies = append(found.policies, file)
	}
	return err
}

// readNamedFolder reads a folder that the user named. It fails if the folder has no files and none below it was read before.
func (r *reader) readNamedFolder(dir string, found *files) error {
	if !r.addName(dir) {
		return nil
	}
	before := len(found.policies) + len(found.assertions)
	if err := r.readFolder(dir, found); err != nil {
		return err
	}
	if len(found.policies)+len(found.assertions) == before && !r.hasOverlap(dir) {
		return errors.New("there are no *.yaml files in " + dir)
	}
	return nil
}

// hasOverlap reports whether a file below the folder was read before.
func (r *reader) hasOverlap(dir string) bool {
	below := fileIdentity(dir) + string(filepath.Separator)
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.seen)), func(name string) bool { return strings.HasPrefix(name, below) })
}

// readFolder reads a folder and its subfolders. It skips hidden entries, such as .git and the folders of a mounted
// ConfigMap behind its links.
func (r *reader) readFolder(dir string, found *files) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		info, err := os.Stat(name)
		switch {
		case strings.HasPrefix(entry.Name(), "."), err != nil && !isYAML(name):
			continue
		case err != nil:
			return err
		case info.IsDir() && r.addName(name):
			err = r.readFolder(name, found)
		case info.Mode().IsRegular() && isYAML(name):
			err = r.readInFolder(name, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readInFolder reads a file in a folder, as policy or as assertions.
func (r *reader) readInFolder(name string, found *files) error {
	file, err := r.readFile(name)
	switch {
	case err != nil || file.Name == "":
		return err
	case isAssertions(file):
		found.assertions = append(found.assertions, file)
	default:
		found.policies = append(found.policies, file)
	}
	return nil
}

// readFile reads a file. The result has no name if the file was read before.
func (r *reader) readFile(name string) (syntax.File, error) {
	if !r.addName(name) {
		return syntax.File{}, nil
	}
	content, err := input.Read(r.in, name, r.budget)
	if err != nil {
		return syntax.File{}, err
	}
	r.budget -= int64(len(content))
	if r.count++; r.count > maxPolicyFiles || r.budget <= 0 {
		return syntax.File{}, fmt.Errorf("more than %d files or %d bytes", maxPolicyFiles, maxPolicyBytes)
	}
	return syntax.File{Name: name, Content: content}, nil
}

func (r *reader) addName(name string) bool {
	name = fileIdentity(name)
	if r.seen[name] {
		return false
	}
	r.seen[name] = true
	return true
}

// fileIdentity returns one name for all names and links of a file.
func fileIdentity(name string) string {
	if whole, err := filepath.Abs(name); err == nil && name != "-" {
		name = whole
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		return target
	}
	return name
}

func isYAML(name string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(filepath.Ext(name)))
}

var (
	testName = regexp.MustCompile(`(?i)_test\.ya?ml$`)
	asserts  = regexp.MustCompile(`(?m)^(tuples|allow|deny):`)
	isPolicy = regexp.MustCompile(`(?mi)^(resourceTypes|unions|actions|actionBindings|apiVersion):`)
)

// isAssertions reports whether a file holds assertions: by its name, or by the keys at the beginning of lines.
func isAssertions(f syntax.File) bool {
	return testName.MatchString(f.Name) || asserts.Match(f.Content) && !isPolicy.Match(f.Content)
}
