package policycommand

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// Server binds the flags of the connection to the PolicyService, and returns how to ask it.
type Server func(*pflag.FlagSet) Check

// Check asks the PolicyService.
type Check func(context.Context, *policyv1.CheckPolicyRequest) (*policyv1.CheckPolicyResponse, error)

// registered says which documents of a Store a policy is checked beside.
type registered struct {
	ask      Check
	store    string
	replaces []string
}

func newRegistered(cmd *cobra.Command, server Server) *registered {
	r := &registered{ask: server(cmd.Flags())}
	cmd.Flags().StringVar(&r.store, "store", "", "check beside what is registered for the Store of this `name`")
	cmd.Flags().StringSliceVar(&r.replaces, "replaces", nil,
		"PolicyDocuments of the Store, as `namespace/name`, that the files are a new version of; manifests say so themselves")
	return r
}

// check sends the files to the service, and returns what it found in them.
func (r *registered) check(cmd *cobra.Command, paths []string, o policy.Options) (policy.Diagnostics, []syntax.File, error) {
	files, err := policyFiles(cmd.InOrStdin(), paths)
	if err != nil {
		return nil, nil, err
	}
	sent := &policyv1.Files{}
	for _, f := range files {
		sent.Files = append(sent.Files, &policyv1.File{Name: f.Name, Content: f.Content})
	}
	request := &policyv1.Policy{Source: &policyv1.Policy_Files{Files: sent}, Beside: r.store, Replaces: r.replaces}
	if chosen(cmd.Flags()) {
		request.Options = &policyv1.Options{
			Strict: o.Strict, RoleSuffix: o.RoleSuffix, RoleType: o.RoleType, RoleRelation: o.RoleRelation,
			SubjectTypes: o.SubjectTypes, Partial: o.Partial,
		}
	}
	answer, err := r.ask(cmd.Context(), &policyv1.CheckPolicyRequest{Policy: request})
	if err != nil {
		return nil, nil, err
	}
	var found policy.Diagnostics
	for _, d := range answer.GetFindings().GetDiagnostics() {
		found = append(found, diagnostic(d))
	}
	return found, files, nil
}

// chosen reports whether a flag asks for options other than those of the Store.
func chosen(flags *pflag.FlagSet) bool {
	own, changed := pflag.NewFlagSet("", pflag.ContinueOnError), false
	bindPolicyOptions(own, &policy.Options{})
	own.VisitAll(func(f *pflag.Flag) { changed = changed || flags.Changed(f.Name) })
	return changed
}

func diagnostic(m *policyv1.Diagnostic) policy.Diagnostic {
	d := policy.Diagnostic{
		Place: place(m.GetPlace()), Code: policy.Code(m.GetCode()), Message: m.GetMessage(), Hint: m.GetHint(),
		Severity: policy.Code(m.GetCode()).Severity(),
	}
	for _, r := range m.GetRelated() {
		d.Also(place(r.GetPlace()), r.GetMessage())
	}
	return d
}

func place(m *policyv1.Place) policy.Place {
	return policy.Place{File: m.GetFile(), Document: int(m.GetDocument()), Line: int(m.GetLine()), Column: int(m.GetColumn()), Path: m.GetPath()}
}
