package policycommand

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/diff"
	"github.com/entail-dev/entail/services/policy/explain"
)

// Exit codes by the worst class of a change, above the codes of package exit.
const (
	exitNarrowing = iota + 10
	exitWidening
	exitBreakingIDs
	exitBreakingData
)

// changeClassError is the error for a change that is not harmless. Its exit code depends on the class.
type changeClassError struct{ class diff.ChangeClass }

func (e changeClassError) Error() string { return "the new policy is " + string(e.class) }

// ExitCode returns the code that [exit.Code] uses.
func (e changeClassError) ExitCode() int {
	return map[diff.ChangeClass]int{
		diff.Narrowing: exitNarrowing, diff.Widening: exitWidening, diff.BreakingForIDs: exitBreakingIDs, diff.BreakingForData: exitBreakingData,
	}[e.class]
}

func newDiffCommand(server ServerConnector) *cobra.Command {
	var options policy.Options
	format := report.Table
	cmd := &cobra.Command{
		Use:   "diff OLD NEW | diff NEW... --store STORE",
		Short: "Show which access a change of a policy widens, narrows or breaks",
		Long: fmt.Sprintf(`diff compares the meaning of two policies, each a file or a folder. With --store it compares the PolicyDocuments
of a Store with the same documents and FILE; a manifest replaces the object that it names. The exit code
is the worst class of change: 0 none or harmless, %d narrowing, %d widening, %d breaking for ids, %d breaking for data.`,
			exitNarrowing, exitWidening, exitBreakingIDs, exitBreakingData),
		Example: "  entail policy diff main/policies policies\n  entail policy diff mine.yaml --store demo",
	}
	bindPolicyOptions(cmd.Flags(), &options)
	format.BindFlag(cmd)
	r := newRegisteredPolicies(cmd, server)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if r.store != "" {
			return cobra.MinimumNArgs(1)(cmd, args)
		}
		return cobra.ExactArgs(2)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		changes, err := r.changesBetween(cmd, args, newFindingsWriterForFormat(format, options))
		if err != nil {
			return err
		}
		document, err := diff.RenderJSON(changes)
		if err != nil {
			return err
		}
		if err := writeResult(cmd.OutOrStdout(), format, json.RawMessage(document), diff.RenderText(changes)); err != nil {
			return err
		}
		if worst := diff.WorstClass(changes); worst != diff.None && worst != diff.Harmless {
			return changeClassError{worst}
		}
		return nil
	}
	return cmd
}

// changesBetween returns the changes between two sets of files, or from the policy of a Store to the files.
func (r *registeredPolicies) changesBetween(cmd *cobra.Command, paths []string, f *findingsWriter) ([]diff.PolicyChange, error) {
	if r.store == "" {
		before, err := f.readCheckedPolicy(cmd, paths[:1])
		if err != nil {
			return nil, err
		}
		after, err := f.readCheckedPolicy(cmd, paths[1:])
		if err != nil {
			return nil, err
		}
		return diff.Policies(before, after), nil
	}
	changes, found, files, err := r.diffWithStore(cmd, paths, f.options)
	if f.files = files; err == nil && len(found) > 0 {
		err = f.writeFindings(f.outputForFindings(cmd, found), found)
	}
	return changes, err
}

func newExplainCommand() *cobra.Command {
	var (
		options policy.Options
		files   []string
	)
	format := report.Table
	cmd := &cobra.Command{
		Use:     "explain TYPE ACTION -f FILE",
		Short:   "Explain each way to an action on a type",
		Example: "  entail policy explain loadbalancer loadbalancer_get -f policies/",
		Args:    cobra.ExactArgs(2),
	}
	bindPolicyOptions(cmd.Flags(), &options)
	format.BindFlag(cmd)
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "`file` or folder of the policy; separate several by commas")
	_ = cmd.MarkFlagRequired("filename") // This cannot fail: the flag is defined above.
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := newFindingsWriterForFormat(format, options).readCheckedPolicy(cmd, files)
		if err != nil {
			return err
		}
		tree, err := explain.Action(p, args[0], args[1])
		if err != nil {
			return exit.NotFoundError{Err: err}
		}
		return writeResult(cmd.OutOrStdout(), format, tree, tree.RenderText())
	}
	return cmd
}

// writeResult writes text for people, or value for programs.
func writeResult(w io.Writer, format report.Format, value any, text string) error {
	if format == report.Table {
		if _, err := io.WriteString(w, text); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		return nil
	}
	document, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return report.WriteDocument(w, format, document)
}
