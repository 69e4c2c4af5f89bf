package policycommand

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// bindPolicyOptions defines the flags for the options of the policy language.
func bindPolicyOptions(fs *pflag.FlagSet, o *policy.Options) {
	def := policy.Options{}.OrDefault()
	fs.BoolVar(&o.Strict, "strict", false, "warn about _ in names of types and relations")
	fs.StringVar(&o.RoleSuffix, "role-suffix", def.RoleSuffix, "suffix of an action's relation for role bindings")
	fs.StringVar(&o.RoleType, "role-type", def.RoleType, "`type` of roles")
	fs.StringVar(&o.RoleRelation, "role-relation", def.RoleRelation, "`relation` of a role to its subjects")
	fs.StringSliceVar(&o.SubjectTypes, "subject-types", def.SubjectTypes, "`types` of subjects, if the policy does not declare the type of roles")
	fs.BoolVar(&o.Partial, "partial", false, "leave out the types of roles and subjects, because another module defines them")
}

// checkPolicyFiles reads files and folders as one policy, together with the files of --with. The policy is nil if there are
// errors.
func (f *findingsWriter) checkPolicyFiles(in io.Reader, paths []string) (*policy.Policy, policy.Diagnostics, error) {
	if err := f.options.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	r := newPolicyFileReader(in)
	documents, unreadable, err := f.readDocuments(r, paths)
	if err != nil {
		return nil, nil, err
	}
	beside, unreadableBeside, err := f.readDocuments(r, f.with)
	if err != nil {
		return nil, nil, err
	}
	p, wrong := check.Documents(append(documents, unreplacedDocuments(documents, beside)...), f.options)
	found := withoutWarningsIn(unreadable.Merge(unreadableBeside).Merge(wrong), beside)
	if found.HasErrors() {
		return nil, found, nil
	}
	return p, found, nil
}

func (f *findingsWriter) readDocuments(r *policyFileReader, paths []string) ([]*syntax.Document, policy.Diagnostics, error) {
	found, err := r.readPaths(paths)
	if err != nil {
		return nil, nil, err
	}
	f.files = append(f.files, found.policies...)
	documents, wrong := syntax.ParseFiles(found.policies, syntax.ParseLimits{})
	return documents, wrong, nil
}

// unreplacedDocuments returns the other documents, without manifests of objects that the documents replace.
func unreplacedDocuments(documents, others []*syntax.Document) []*syntax.Document {
	taken := map[string]bool{}
	for _, d := range documents {
		taken[d.Object] = d.Object != ""
	}
	return slices.DeleteFunc(slices.Clone(others), func(d *syntax.Document) bool { return taken[d.Object] })
}

// withoutWarningsIn removes warnings in the files of other services, because the command is not about them. Errors stay.
func withoutWarningsIn(found policy.Diagnostics, others []*syntax.Document) policy.Diagnostics {
	of := map[string]bool{}
	for _, d := range others {
		of[d.Source.File] = true
	}
	return slices.DeleteFunc(found, func(d policy.Diagnostic) bool { return d.Severity == policy.Warning && of[d.File] })
}

// errFindings makes the command fail if there are findings.
var errFindings = errors.New("there are findings")
