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

// policyFileSet holds the files at the given paths.
type policyFileSet struct {
	policies []syntax.File
	// assertions holds files below folders that contain assertions instead of policies.
	assertions []syntax.File
}

// policyFileReader reads each file once, even if several names or links lead to it.
type policyFileReader struct {
	in     io.Reader
	seen   map[string]bool
	budget int64
	count  int
}

func newPolicyFileReader(in io.Reader) *policyFileReader {
	return &policyFileReader{in: in, seen: map[string]bool{}, budget: maxPolicyBytes}
}

// readPolicyFiles reads the files of a policy.
func readPolicyFiles(in io.Reader, paths []string) ([]syntax.File, error) {
	found, err := newPolicyFileReader(in).readPaths(paths)
	return found.policies, err
}

// readPaths reads files, and standard input for -. Below folders it reads every *.yaml and *.yml file that is not hidden.
func (r *policyFileReader) readPaths(paths []string) (policyFileSet, error) {
	var found policyFileSet
	for _, path := range paths {
		if err := r.readPath(path, &found); err != nil {
			return policyFileSet{}, fmt.Errorf("%w: read policy: %w", exit.ErrUsage, err)
		}
	}
	return found, nil
}

func (r *policyFileReader) readPath(name string, found *policyFileSet) error {
	if name != "-" {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return r.readNamedFolder(name, found)
		}
	}
	file, err := r.readFileOnce(name)
	if err == nil && file.Name != "" {
		found.policies = append(found.policies, file)
	}
	return err
}

// readNamedFolder reads a folder that the user named. It fails if the folder has no files and none below it was read before.
func (r *policyFileReader) readNamedFolder(dir string, found *policyFileSet) error {
	if !r.markSeen(dir) {
		return nil
	}
	before := len(found.policies) + len(found.assertions)
	if err := r.readFolder(dir, found); err != nil {
		return err
	}
	if len(found.policies)+len(found.assertions) == before && !r.hasReadBelow(dir) {
		return errors.New("there are no *.yaml files in " + dir)
	}
	return nil
}

// hasReadBelow reports whether a file below the folder was read before.
func (r *policyFileReader) hasReadBelow(dir string) bool {
	below := fileIdentity(dir) + string(filepath.Separator)
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.seen)), func(name string) bool { return strings.HasPrefix(name, below) })
}

// readFolder reads a folder and its subfolders. It skips hidden entries, such as .git and the folders of a mounted
// ConfigMap behind its links.
func (r *policyFileReader) readFolder(dir string, found *policyFileSet) error {
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
		case info.IsDir() && r.markSeen(name):
			err = r.readFolder(name, found)
		case info.Mode().IsRegular() && isYAML(name):
			err = r.readFolderFile(name, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readFolderFile reads a file in a folder, as policy or as assertions.
func (r *policyFileReader) readFolderFile(name string, found *policyFileSet) error {
	file, err := r.readFileOnce(name)
	switch {
	case err != nil || file.Name == "":
		return err
	case isAssertionFile(file):
		found.assertions = append(found.assertions, file)
	default:
		found.policies = append(found.policies, file)
	}
	return nil
}

// readFileOnce reads a file. The result has no name if the file was read before.
func (r *policyFileReader) readFileOnce(name string) (syntax.File, error) {
	if !r.markSeen(name) {
		return syntax.File{}, nil
	}
	content, err := input.ReadFileOrStdin(r.in, name, r.budget)
	if err != nil {
		return syntax.File{}, err
	}
	r.budget -= int64(len(content))
	if r.count++; r.count > maxPolicyFiles || r.budget <= 0 {
		return syntax.File{}, fmt.Errorf("more than %d files or %d bytes", maxPolicyFiles, maxPolicyBytes)
	}
	return syntax.File{Name: name, Content: content}, nil
}

func (r *policyFileReader) markSeen(name string) bool {
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

// isAssertionFile reports whether a file holds assertions: by its name, or by the keys at the beginning of lines.
func isAssertionFile(f syntax.File) bool {
	return testName.MatchString(f.Name) || asserts.Match(f.Content) && !isPolicy.Match(f.Content)
}
