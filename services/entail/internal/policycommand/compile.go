package policycommand

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/spicedb"
)

// errDrift makes the command fail if a file differs from the compiled policy.
var errDrift = errors.New("the file is not what the policy compiles to: compile it again")

// Targets of compilation, the values of --target.
const (
	targetSpiceDB = "spicedb"
	targetDSL     = "openfga-dsl"
	targetJSON    = "openfga-json"
	targetModules = "openfga-modules"
)

// compilerOutput is one output of the compiler. Its name is empty if it is the only one.
type compilerOutput struct {
	name    string
	content []byte
}

// compileFlags holds the flags of `policy compile`.
type compileFlags struct {
	target, out, against string
	spicedb              spicedb.Options
	openfga              openfga.Options
}

func newCompileCommand() *cobra.Command {
	var c compileFlags
	cmd := &cobra.Command{
		Use:   "compile FILE... --target TARGET",
		Short: "Print the OpenFGA model or the SpiceDB schema of a policy",
		Example: "  entail policy compile policies/ --target spicedb > schema.zed\n" +
			"  entail policy compile policies/ --target openfga-modules --out model/\n" +
			"  entail policy compile policies/ --target openfga-dsl --check model.fga",
		Args: cobra.MinimumNArgs(1),
	}
	f := newFindingsWriter(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&c.target, "target", "t", "", "spicedb, openfga-dsl, openfga-json or openfga-modules")
	flags.StringVar(&c.out, "out", "", "`file` to write, or folder for modules; standard output without it")
	flags.StringVar(&c.against, "check", "", "write nothing; fail if this `file`, or folder for modules, differs from the output")
	flags.StringVar(&c.spicedb.Prefix, "prefix", "infratographer", "`prefix` of definitions in SpiceDB")
	flags.BoolVar(&c.spicedb.Unprefixed, "no-prefix", false, "write SpiceDB definitions without a prefix")
	flags.StringVar(&c.openfga.SchemaVersion, "schema-version", "1.1", "`version` of OpenFGA's schema in one file: 1.1 or 1.2; modules are always 1.2")
	flags.IntVar(&c.openfga.MaxTypes, "max-types", 0, "maximum number of types that the OpenFGA server accepts (default 100)")
	flags.IntVar(&c.openfga.MaxBytes, "max-bytes", 0, "maximum bytes of a model that the OpenFGA server accepts (default 262144)")
	flags.IntVar(&c.spicedb.MaxBytes, "spicedb-max-bytes", 0, "maximum bytes of a schema that SpiceDB accepts; -1 for no limit (default 4194304)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := f.readCheckedPolicy(cmd, args)
		if err != nil {
			return err
		}
		made, found, err := c.compilePolicy(p)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			if err := f.writeFindings(cmd.ErrOrStderr(), found); err != nil {
				return err
			}
		}
		if c.against != "" {
			return compareWithFiles(c.against, made)
		}
		return c.writeOutputs(cmd, made)
	}
	return cmd
}

func (c *compileFlags) compilePolicy(p *policy.Policy) ([]compilerOutput, policy.Diagnostics, error) {
	one := func(content []byte, found policy.Diagnostics) ([]compilerOutput, policy.Diagnostics, error) {
		return []compilerOutput{{content: content}}, found, nil
	}
	switch c.target {
	case targetSpiceDB:
		return one(spicedb.CompileSchema(p, c.spicedb))
	case targetDSL:
		return one(openfga.CompileDSL(p, c.openfga))
	case targetJSON:
		return one(openfga.CompileJSON(p, c.openfga))
	case targetModules:
		modules, found := openfga.CompileModules(p, c.openfga)
		made := []compilerOutput{{name: "fga.mod", content: openfga.ModFile(modules)}}
		for _, m := range modules {
			made = append(made, compilerOutput{m.File, m.Content})
		}
		return made, found, nil
	}
	return nil, nil, fmt.Errorf("%w: --target %q is none of spicedb, openfga-dsl, openfga-json, openfga-modules", exit.ErrUsage, c.target)
}

func (c *compileFlags) writeOutputs(cmd *cobra.Command, made []compilerOutput) error {
	for _, a := range made {
		if c.out != "" {
			if err := replaceFileAtomically(filepath.Join(c.out, a.name), a.content); err != nil {
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
			}
			continue
		}
		if a.name != "" {
			cmd.Printf("# %s\n", a.name)
		}
		if _, err := cmd.OutOrStdout().Write(a.content); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// compareWithFiles returns an error if the files differ from the compiled ones. For modules, it also rejects any other *.fga
// file in the folder.
func compareWithFiles(path string, made []compilerOutput) error {
	for _, a := range made {
		name := filepath.Join(path, a.name)
		has, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("%w: read the file to compare with: %w", exit.ErrUsage, err)
		}
		if !bytes.Equal(has, a.content) {
			return fmt.Errorf("%s: %w", name, errDrift)
		}
	}
	if len(made) < 2 {
		return nil
	}
	others, err := filepath.Glob(filepath.Join(path, "*.fga"))
	if err != nil {
		return fmt.Errorf("%w: list %s: %w", exit.ErrUsage, path, err)
	}
	for _, name := range others {
		if !slices.ContainsFunc(made, func(a compilerOutput) bool { return filepath.Join(path, a.name) == name }) {
			return fmt.Errorf("%s: %w", name, errDrift)
		}
	}
	return nil
}

// replaceFileAtomically replaces a file in one step, so a concurrent reader reads the old or the new content. It keeps a symbolic
// link and writes its target.
func replaceFileAtomically(name string, content []byte) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	draft, err := os.CreateTemp(filepath.Dir(name), ".entail-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(draft.Name()) // After a rename the draft no longer exists.
	_, err = draft.Write(content)
	err = errors.Join(err, draft.Chmod(mode), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
