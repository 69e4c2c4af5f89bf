package policycommand

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/input"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

const (
	// maxPolicyBytes is more than load takes: it refuses what was read only in part.
	maxPolicyBytes = 33 << 20
	maxPolicyFiles = 10_000
)

// bindPolicyOptions makes the choices that the language leaves open flags.
func bindPolicyOptions(fs *pflag.FlagSet, o *policy.Options) {
	def := policy.Options{}.OrDefault()
	fs.BoolVar(&o.Strict, "strict", false, "warn of _ in the names of types and relations")
	fs.StringVar(&o.RoleSuffix, "role-suffix", def.RoleSuffix, "what makes an action the relation of its role bindings")
	fs.StringVar(&o.RoleType, "role-type", def.RoleType, "`type` of roles")
	fs.StringVar(&o.RoleRelation, "role-relation", def.RoleRelation, "`relation` of a role to its subjects")
	fs.StringSliceVar(&o.SubjectTypes, "subject-types", def.SubjectTypes, "`types` of subjects, where the policy does not declare the type of roles")
	fs.BoolVar(&o.Partial, "partial", false, "leave out the types of roles and subjects: something else defines them")
}

// checkPolicy reads files and folders as one policy. The policy is nil where there are errors.
func checkPolicy(in io.Reader, paths []string, o policy.Options) (*policy.Policy, policy.Diagnostics, error) {
	if err := o.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	files, err := policyFiles(in, paths)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	p, found := check.Files(files, syntax.Limits{}, o)
	return p, found, nil
}

// policyFiles reads files, every *.yaml and *.yml below folders, and standard input for -.
func policyFiles(in io.Reader, paths []string) ([]syntax.File, error) {
	var files []syntax.File
	budget := int64(maxPolicyBytes)
	for _, path := range paths {
		names, err := policyNames(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			content, err := input.Read(in, name, budget)
			if err != nil {
				return nil, fmt.Errorf("read file: %w", err)
			}
			budget -= int64(len(content))
			if files = append(files, syntax.File{Name: name, Content: content}); len(files) > maxPolicyFiles || budget <= 0 {
				return nil, fmt.Errorf("read policy: more than %d files or %d bytes", maxPolicyFiles, maxPolicyBytes)
			}
		}
	}
	return files, nil
}

func policyNames(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var names []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
			names = append(names, name)
		}
		return err
	})
	if err == nil && len(names) == 0 {
		err = errors.New("there are no *.yaml files in " + path)
	}
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	return names, nil
}

// errFindings tells scripts that something was found.
var errFindings = errors.New("there are findings")
