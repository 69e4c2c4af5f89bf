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

// Server defines the flags of the connection to PolicyService, and returns the function that connects.
type Server func(*pflag.FlagSet) Dial

// Dial returns a client of PolicyService.
type Dial func() (policyv1connect.PolicyServiceClient, error)

// registered names the Store whose registered documents form one policy with the files.
type registered struct {
	dial     Dial
	store    string
	replaces []string
}

func newRegistered(cmd *cobra.Command, server Server) *registered {
	r := &registered{dial: server(cmd.Flags())}
	cmd.Flags().StringVar(&r.store, "store", "", "combine the files with the PolicyDocuments of the Store of this `name`")
	cmd.Flags().StringSliceVar(&r.replaces, "replaces", nil,
		"PolicyDocuments of the Store, as `namespace/name`, that the files replace; manifests name theirs")
	return r
}

// checkRegistered sends the files to the service, and returns its findings.
func (r *registered) checkRegistered(cmd *cobra.Command, paths []string, o policy.Options) (policy.Diagnostics, []syntax.File, error) {
	request, files, err := r.registeredPolicy(cmd, paths, o)
	if err != nil {
		return nil, nil, err
	}
	client, err := r.dial()
	if err != nil {
		return nil, nil, err
	}
	answer, err := client.CheckPolicy(cmd.Context(), &policyv1.CheckPolicyRequest{Policy: request})
	return report.Diagnostics(answer.GetFindings()), files, err
}

// diffRegistered returns the changes if the files were registered. It also returns the findings in the new policy, and those in
// the old one if that has errors.
func (r *registered) diffRegistered(cmd *cobra.Command, paths []string, o policy.Options) ([]diff.Change, policy.Diagnostics, []syntax.File, error) {
	request, files, err := r.registeredPolicy(cmd, paths, o)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := r.dial()
	if err != nil {
		return nil, nil, nil, err
	}
	before := &policyv1.Policy{Source: &policyv1.Policy_Store{Store: r.store}, Options: request.GetOptions()}
	answer, err := client.DiffPolicies(cmd.Context(), &policyv1.DiffPoliciesRequest{Old: before, New: request})
	var changes []diff.Change
	for _, c := range answer.GetChanges() {
		changes = append(changes, toChange(c))
	}
	if answer.GetTruncated() {
		changes = append(changes, diff.Change{
			Class: toChange(answer.GetChanges()[len(changes)-1]).Class, Name: "more",
			Message: fmt.Sprintf("and %d more", int(answer.GetTotal())-len(changes)),
		})
	}
	found := report.Diagnostics(answer.GetNewFindings())
	if is := report.Diagnostics(answer.GetOldFindings()); is.HasErrors() {
		found = found.Join(is)
	}
	return changes, found, files, err
}

// registeredPolicy returns the policy of the files, together with the documents of the Store.
func (r *registered) registeredPolicy(cmd *cobra.Command, paths []string, o policy.Options) (*policyv1.Policy, []syntax.File, error) {
	files, err := policyFiles(cmd.InOrStdin(), paths)
	if err != nil {
		return nil, nil, err
	}
	request := &policyv1.Policy{Source: &policyv1.Policy_Files{Files: filesMessage(files)}, Beside: r.store, Replaces: r.replaces}
	if hasChosen(cmd.Flags()) {
		request.Options = &policyv1.Options{
			Strict: o.Strict, RoleSuffix: o.RoleSuffix, RoleType: o.RoleType, RoleRelation: o.RoleRelation,
			SubjectTypes: o.SubjectTypes, Partial: o.Partial,
		}
	}
	return request, files, nil
}

// Documents reads the files at a path. If the only file is not a policy, it returns the content as text.
func Documents(in io.Reader, path string) (documents *policyv1.Files, text []byte, err error) {
	files, err := policyFiles(in, []string{path})
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 1 {
		if text := files[0].Content; !isPolicy.Match(text) && !bytes.HasPrefix(text, []byte("{")) {
			return nil, text, nil
		}
	}
	return filesMessage(files), nil, nil
}

func filesMessage(files []syntax.File) *policyv1.Files {
	m := &policyv1.Files{}
	for _, f := range files {
		m.Files = append(m.Files, &policyv1.File{Name: f.Name, Content: f.Content})
	}
	return m
}

// hasChosen reports whether a flag sets an option of the policy language. Otherwise the options of the Store apply.
func hasChosen(flags *pflag.FlagSet) bool {
	own, changed := pflag.NewFlagSet("", pflag.ContinueOnError), false
	bindPolicyOptions(own, &policy.Options{})
	own.VisitAll(func(f *pflag.Flag) { changed = changed || flags.Changed(f.Name) })
	return changed
}

func toChange(m *policyv1.Change) diff.Change {
	class := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(m.GetClass().String(), "CLASS_")), "_", "-")
	return diff.Change{
		Class: diff.Class(class), What: diff.What(m.GetWhat()), Type: m.GetType(), Name: m.GetName(), Message: m.GetMessage(),
		Old: report.Place(m.GetOld()), New: report.Place(m.GetNew()),
	}
}
