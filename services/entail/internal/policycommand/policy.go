// Package policycommand is `entail policy`, which applies the policy language to files. Only --store uses a server. A
// command exits with 1 if it has findings, and with 2 if it cannot read its input. `policy diff` has codes of its own
// for classes of changes.
package policycommand

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/lint"
	policyreport "github.com/entail-dev/entail/services/policy/report"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// New returns the command `policy` with its subcommands.
func New(server ServerConnector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check, compile, test and compare authorization policies",
		Long: `policy works on files and folders. Only --store needs a server. - is standard input. All files of a command
form one policy.`,
	}
	cmd.AddCommand(
		newCheckCommand(server), newCompileCommand(), newTestCommand(), newDiffCommand(server),
		newLintCommand(), newFmtCommand(), newGraphCommand(), newExplainCommand(),
	)
	return cmd
}

// Forms of findings, values of --output.
const asText, asJSON = "text", "json"

// findingsWriter checks policies and writes their findings.
type findingsWriter struct {
	format  string
	options policy.Options
	// with holds files and folders of other services that belong to the policy.
	with []string
	// answer is true if standard output is for programs. Errors then go there as well, in place of the result.
	answer bool
	// files holds the files that findings quote.
	files []syntax.File
}

func newFindingsWriter(cmd *cobra.Command) *findingsWriter {
	f := &findingsWriter{}
	bindPolicyOptions(cmd.Flags(), &f.options)
	f.bindOutputFlag(cmd)
	cmd.Flags().StringSliceVar(&f.with, "with", nil, "`file` or folder of other services that belongs to the policy; separate several by commas")
	return f
}

func (f *findingsWriter) bindOutputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.format, "output", "o", asText, "format of findings: text, json or sarif")
}

// newFindingsWriterForFormat returns the writer of a command whose results have the given format.
func newFindingsWriterForFormat(format report.Format, o policy.Options) *findingsWriter {
	if format == report.Table {
		return &findingsWriter{format: asText, options: o}
	}
	return &findingsWriter{format: asJSON, options: o, answer: true}
}

// writeFindings writes findings. It returns an error if one of them is an error.
func (f *findingsWriter) writeFindings(w io.Writer, found policy.Diagnostics) error {
	formats := map[string]func(policy.Diagnostics) ([]byte, error){
		asText: func(ds policy.Diagnostics) ([]byte, error) {
			return []byte(policyreport.RenderText(ds, f.files...)), nil
		},
		asJSON: policyreport.RenderJSON, "sarif": policyreport.RenderSARIF,
	}
	if formats[f.format] == nil {
		return fmt.Errorf("%w: --output %q is none of text, json, sarif", exit.ErrUsage, f.format)
	}
	out, err := formats[f.format](found)
	if err == nil {
		_, err = w.Write(out)
	}
	if err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	if !found.HasErrors() {
		return nil
	}
	return f.findingsError()
}

// findingsError returns the error of a command that has written its findings.
func (f *findingsWriter) findingsError() error {
	if f.format == asText {
		return errFindings
	}
	return fmt.Errorf("%w: %w", exit.ErrTold, errFindings)
}

// readCheckedPolicy checks files and returns their policy. Findings go to standard error; for programs, errors replace the result
// on standard output.
func (f *findingsWriter) readCheckedPolicy(cmd *cobra.Command, paths []string) (*policy.Policy, error) {
	p, found, err := f.checkPolicyFiles(cmd.InOrStdin(), paths)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		err = f.writeFindings(f.outputForFindings(cmd, found), found)
	}
	return p, err
}

func (f *findingsWriter) outputForFindings(cmd *cobra.Command, found policy.Diagnostics) io.Writer {
	if f.answer && found.HasErrors() {
		return cmd.OutOrStdout()
	}
	return cmd.ErrOrStderr()
}

func newCheckCommand(server ServerConnector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check a policy for errors",
		Long: `check prints every error in a policy. If a document refers to types of other services, give their files with
--with, or give --store to use the PolicyDocuments of a Store. With --store, a manifest replaces the object
that it names.`,
		Example: "  entail policy check policies/\n  entail policy check a.yaml b.yaml -o sarif\n" +
			"  entail policy check mine.yaml --with others/\n  entail policy check mine.yaml --store demo",
		Args: cobra.MinimumNArgs(1),
	}
	f := newFindingsWriter(cmd)
	r := newRegisteredPolicies(cmd, server)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.store != "" {
			found, files, err := r.checkWithStore(cmd, append(args, f.with...), f.options)
			if err != nil {
				return err
			}
			f.files = files
			return f.writeFindings(cmd.OutOrStdout(), found)
		}
		_, found, err := f.checkPolicyFiles(cmd.InOrStdin(), args)
		if err != nil {
			return err
		}
		return f.writeFindings(cmd.OutOrStdout(), found)
	}
	return cmd
}

func newLintCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "lint FILE...",
		Short:   "Check a policy for valid but suspicious definitions",
		Example: "  entail policy lint policies/",
		Args:    cobra.MinimumNArgs(1),
	}
	f := newFindingsWriter(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, found, err := f.checkPolicyFiles(cmd.InOrStdin(), args)
		if err != nil {
			return err
		}
		if p != nil {
			found = found.Merge(lint.Policy(p))
		}
		if err := f.writeFindings(cmd.OutOrStdout(), found); err != nil || len(found) == 0 {
			return err
		}
		return f.findingsError()
	}
	return cmd
}
