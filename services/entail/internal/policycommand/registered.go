package policycommand

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/policy/v1/policyv1connect"
	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/diff"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// ServerConnector defines the flags of the connection to PolicyService, and returns the function that connects.
type ServerConnector func(*pflag.FlagSet) DialFunc

// DialFunc returns a client of PolicyService.
type DialFunc func() (policyv1connect.PolicyServiceClient, error)

// registeredPolicies names the Store whose registered documents form one policy with the files.
type registeredPolicies struct {
	dial     DialFunc
	store    string
	replaces []string
}

func newRegisteredPolicies(cmd *cobra.Command, server ServerConnector) *registeredPolicies {
	r := &registeredPolicies{dial: server(cmd.Flags())}
	cmd.Flags().StringVar(&r.store, "store", "", "combine the files with the PolicyDocuments of the Store of this `name`")
	cmd.Flags().StringSliceVar(&r.replaces, "replaces", nil,
		"PolicyDocuments of the Store, as `namespace/name`, that the files replace; manifests name theirs")
	return r
}

// checkWithStore sends the files to the service, and returns its findings.
func (r *registeredPolicies) checkWithStore(cmd *cobra.Command, paths []string, o policy.Options) (policy.Diagnostics, []syntax.File, error) {
	request, files, err := r.policyWithStore(cmd, paths, o)
	if err != nil {
		return nil, nil, err
	}
	client, err := r.dial()
	if err != nil {
		return nil, nil, err
	}
	answer, err := client.CheckPolicy(cmd.Context(), &policyv1.CheckPolicyRequest{Policy: request})
	return report.ToDiagnostics(answer.GetFindings()), files, err
}

// diffWithStore returns the changes if the files were registered. It also returns the findings in the new policy, and those in
// the old one if that has errors.
func (r *registeredPolicies) diffWithStore(cmd *cobra.Command, paths []string, o policy.Options) ([]diff.PolicyChange, policy.Diagnostics,
	[]syntax.File, error,
) {
	request, files, err := r.policyWithStore(cmd, paths, o)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := r.dial()
	if err != nil {
		return nil, nil, nil, err
	}
	before := &policyv1.Policy{Source: &policyv1.Policy_Store{Store: r.store}, Options: request.GetOptions()}
	answer, err := client.DiffPolicies(cmd.Context(), &policyv1.DiffPoliciesRequest{Old: before, New: request})
	var changes []diff.PolicyChange
	for _, c := range answer.GetChanges() {
		changes = append(changes, toPolicyChange(c))
	}
	if answer.GetTruncated() {
		changes = append(changes, diff.PolicyChange{
			Class: toPolicyChange(answer.GetChanges()[len(changes)-1]).Class, Name: "more",
			Message: fmt.Sprintf("and %d more", int(answer.GetTotal())-len(changes)),
		})
	}
	found := report.ToDiagnostics(answer.GetNewFindings())
	if is := report.ToDiagnostics(answer.GetOldFindings()); is.HasErrors() {
		found = found.Merge(is)
	}
	return changes, found, files, err
}

// policyWithStore returns the policy of the files, together with the documents of the Store.
func (r *registeredPolicies) policyWithStore(cmd *cobra.Command, paths []string, o policy.Options) (*policyv1.Policy, []syntax.File, error) {
	files, err := readPolicyFiles(cmd.InOrStdin(), paths)
	if err != nil {
		return nil, nil, err
	}
	request := &policyv1.Policy{Source: &policyv1.Policy_Files{Files: toFilesMessage(files)}, Beside: r.store, Replaces: r.replaces}
	if hasPolicyOptionFlag(cmd.Flags()) {
		request.Options = &policyv1.Options{
			Strict: o.Strict, RoleSuffix: o.RoleSuffix, RoleType: o.RoleType, RoleRelation: o.RoleRelation,
			SubjectTypes: o.SubjectTypes, Partial: o.Partial,
		}
	}
	return request, files, nil
}

// ReadDocuments reads the files at a path. If the only file is not a policy, it returns the content as text.
func ReadDocuments(in io.Reader, path string) (documents *policyv1.Files, text []byte, err error) {
	files, err := readPolicyFiles(in, []string{path})
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 1 {
		if text := files[0].Content; !isPolicy.Match(text) && !bytes.HasPrefix(text, []byte("{")) {
			return nil, text, nil
		}
	}
	return toFilesMessage(files), nil, nil
}

func toFilesMessage(files []syntax.File) *policyv1.Files {
	m := &policyv1.Files{}
	for _, f := range files {
		m.Files = append(m.Files, &policyv1.File{Name: f.Name, Content: f.Content})
	}
	return m
}

// hasPolicyOptionFlag reports whether a flag sets an option of the policy language. Otherwise the options of the Store
// apply.
func hasPolicyOptionFlag(flags *pflag.FlagSet) bool {
	own, changed := pflag.NewFlagSet("", pflag.ContinueOnError), false
	bindPolicyOptions(own, &policy.Options{})
	own.VisitAll(func(f *pflag.Flag) { changed = changed || flags.Changed(f.Name) })
	return changed
}

func toPolicyChange(m *policyv1.Change) diff.PolicyChange {
	class := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(m.GetClass().String(), "CLASS_")), "_", "-")
	return diff.PolicyChange{
		Class: diff.ChangeClass(class), What: diff.ChangedPart(m.GetWhat()), Type: m.GetType(), Name: m.GetName(), Message: m.GetMessage(),
		Old: report.ToPlace(m.GetOld()), New: report.ToPlace(m.GetNew()),
	}
}
