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
	// maxPolicyBytes is more than a policy may have: it is refused for what was read only in part.
	maxPolicyBytes = 33 << 20
	maxPolicyFiles = 10_000
)

// files are what paths lead to.
type files struct {
	policies []syntax.File
	// assertions are files found below folders that hold no policy but assertions about one.
	assertions []syntax.File
}

// reader reads each file once, by whatever names and links it is reached.
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
	found, err := newReader(in).read(paths)
	return found.policies, err
}

// read reads files, every *.yaml and *.yml below folders but for what is hidden, and standard input for -.
func (r *reader) read(paths []string) (files, error) {
	var found files
	for _, path := range paths {
		if err := r.path(path, &found); err != nil {
			return files{}, fmt.Errorf("%w: read policy: %w", exit.ErrUsage, err)
		}
	}
	return found, nil
}

func (r *reader) path(path string, found *files) error {
	if path != "-" {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return r.named(path, found)
		}
	}
	file, err := r.file(path)
	if err == nil && file.Name != "" {
		found.policies = append(found.policies, file)
	}
	return err
}

// named reads a folder that somebody named, and therefore has policies or had them read already.
func (r *reader) named(dir string, found *files) error {
	if !r.first(dir) {
		return nil
	}
	before := len(found.policies) + len(found.assertions)
	if err := r.folder(dir, found); err != nil {
		return err
	}
	if len(found.policies)+len(found.assertions) == before && !r.overlaps(dir) {
		return errors.New("there are no *.yaml files in " + dir)
	}
	return nil
}

// overlaps reports whether something below the folder has been read.
func (r *reader) overlaps(dir string) bool {
	below := identity(dir) + string(filepath.Separator)
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.seen)), func(name string) bool { return strings.HasPrefix(name, below) })
}

// folder reads what is in a folder, and in the folders in it. Hidden ones are not for people: .git, and
// those that Kubernetes keeps behind the links of a mounted ConfigMap.
func (r *reader) folder(dir string, found *files) error {
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
		case info.IsDir() && r.first(name):
			err = r.folder(name, found)
		case info.Mode().IsRegular() && isYAML(name):
			err = r.below(name, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// below reads a file that nobody named.
func (r *reader) below(name string, found *files) error {
	file, err := r.file(name)
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

// file reads a file; it has no name if it has been read before.
func (r *reader) file(name string) (syntax.File, error) {
	if !r.first(name) {
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

func (r *reader) first(name string) bool {
	name = identity(name)
	if r.seen[name] {
		return false
	}
	r.seen[name] = true
	return true
}

// identity is one name for all that lead to the same file.
func identity(name string) string {
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

// isAssertions tells files of assertions from policies by their name, or by what stands at the beginning of lines.
func isAssertions(f syntax.File) bool {
	return testName.MatchString(f.Name) || asserts.Match(f.Content) && !isPolicy.Match(f.Content)
}
