package policycommand

import (
	"errors"
	"fmt"
	"io"
	"slices"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/entail-dev/entail/services/entail/internal/assertion"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/input"
	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// errAssertions makes the command fail if an assertion does not hold.
var errAssertions = errors.New("assertions failed")

func newTestCommand() *cobra.Command {
	var (
		assertions []string
		options    policy.Options
		format     = report.Table
	)
	cmd := &cobra.Command{
		Use:   "test FILE... --assertions FILE",
		Short: "Run assertions against a policy, in an OpenFGA in memory",
		Long: `test loads the policy into an OpenFGA in memory. For each document of assertions it adds the tuples and checks
every line of allow and deny:

  name: a viewer of the root tenant
  tuples:
    - tenant:child#parent@tenant:root
    - tenant:root#loadbalancer_get_role@role:viewer#subject
    - role:viewer#subject@user:alice
  allow: [user:alice loadbalancer_get tenant:child]
  deny:  [user:bob loadbalancer_get tenant:child]

In a folder, a file holds assertions if its name is *_test.yaml or if it has the fields above. --assertions names
other files instead.`,
		Example: "  entail policy test policies/\n  entail policy test policies/ --assertions policies/tests/access.yaml",
		Args:    cobra.MinimumNArgs(1),
	}
	bindPolicyOptions(cmd.Flags(), &options)
	format.BindFlag(cmd)
	cmd.Flags().StringSliceVarP(&assertions, "assertions", "a", nil, "`file` of assertions; separate several by commas")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subject, err := compileTestedPolicy(cmd, args, newFindingsWriterForFormat(format, options))
		if err != nil {
			return err
		}
		scenarios, err := readScenarios(cmd.InOrStdin(), args, assertions)
		if err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		result, err := assertion.RunScenarios(cmd.Context(), subject, scenarios)
		if err != nil {
			return err
		}
		if err := writeResult(cmd.OutOrStdout(), format, result, result.Text()); err != nil {
			return err
		}
		if len(result.Failures) > 0 {
			return errAssertions
		}
		return nil
	}
	return cmd
}

// compileTestedPolicy returns the policy in the files, with its model.
func compileTestedPolicy(cmd *cobra.Command, paths []string, f *findingsWriter) (assertion.CompiledPolicy, error) {
	p, err := f.readCheckedPolicy(cmd, paths)
	if err != nil {
		return assertion.CompiledPolicy{}, err
	}
	document, found := openfga.CompileJSON(p, openfga.Options{MaxTypes: -1, MaxBytes: -1})
	if found.HasErrors() {
		return assertion.CompiledPolicy{}, f.writeFindings(f.outputForFindings(cmd, found), found)
	}
	model := &openfgav1.AuthorizationModel{}
	if err := protojson.Unmarshal(document, model); err != nil {
		return assertion.CompiledPolicy{}, fmt.Errorf("read the compiled model: %w", err)
	}
	return assertion.CompiledPolicy{Policy: p, Model: model}, nil
}

// readScenarios reads the named files of assertions. If none is named, it reads those in the folders of the policy.
func readScenarios(in io.Reader, paths, named []string) ([]assertion.Scenario, error) {
	var files []syntax.File
	for _, name := range named {
		content, err := input.ReadFileOrStdin(in, name, assertion.MaxBytes+1)
		if err != nil {
			return nil, fmt.Errorf("read file: %w", err)
		}
		files = append(files, syntax.File{Name: name, Content: content})
	}
	if len(named) == 0 {
		beside, err := newPolicyFileReader(in).readPaths(slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == "-" }))
		if err != nil {
			return nil, err
		}
		files = beside.assertions
	}
	var all []assertion.Scenario
	for _, file := range files {
		scenarios, err := assertion.ParseScenarios(file.Name, file.Content)
		if err != nil {
			return nil, err
		}
		all = append(all, scenarios...)
	}
	if len(all) == 0 {
		return nil, errors.New("there is nothing to ask: name a file by --assertions")
	}
	return all, nil
}
