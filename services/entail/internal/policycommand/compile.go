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

// artifact is one output of the compiler. Its name is empty if it is the only one.
type artifact struct {
	name    string
	content []byte
}

// compilation holds the flags of `policy compile`.
type compilation struct {
	target, out, against string
	spicedb              spicedb.Options
	openfga              openfga.Options
}

func newCompile() *cobra.Command {
	var c compilation
	cmd := &cobra.Command{
		Use:   "compile FILE... --target TARGET",
		Short: "Print the OpenFGA model or the SpiceDB schema of a policy",
		Example: "  entail policy compile policies/ --target spicedb > schema.zed\n" +
			"  entail policy compile policies/ --target openfga-modules --out model/\n" +
			"  entail policy compile policies/ --target openfga-dsl --check model.fga",
		Args: cobra.MinimumNArgs(1),
	}
	f := newFindings(cmd)
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
		p, err := f.readPolicy(cmd, args)
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
			return compareFiles(c.against, made)
		}
		return c.emitArtifacts(cmd, made)
	}
	return cmd
}

func (c *compilation) compilePolicy(p *policy.Policy) ([]artifact, policy.Diagnostics, error) {
	one := func(content []byte, found policy.Diagnostics) ([]artifact, policy.Diagnostics, error) {
		return []artifact{{content: content}}, found, nil
	}
	switch c.target {
	case targetSpiceDB:
		return one(spicedb.Schema(p, c.spicedb))
	case targetDSL:
		return one(openfga.DSL(p, c.openfga))
	case targetJSON:
		return one(openfga.JSON(p, c.openfga))
	case targetModules:
		modules, found := openfga.Modules(p, c.openfga)
		made := []artifact{{name: "fga.mod", content: openfga.Manifest(modules)}}
		for _, m := range modules {
			made = append(made, artifact{m.File, m.Content})
		}
		return made, found, nil
	}
	return nil, nil, fmt.Errorf("%w: --target %q is none of spicedb, openfga-dsl, openfga-json, openfga-modules", exit.ErrUsage, c.target)
}

func (c *compilation) emitArtifacts(cmd *cobra.Command, made []artifact) error {
	for _, a := range made {
		if c.out != "" {
			if err := replaceFile(filepath.Join(c.out, a.name), a.content); err != nil {
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

// compareFiles returns an error if the files differ from the compiled ones. For modules, it also rejects any other *.fga
// file in the folder.
func compareFiles(path string, made []artifact) error {
	for _, a := range made {
		name := filepath.Join(path, a.name)
		has, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("%w: read what to compare with: %w", exit.ErrUsage, err)
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
		if !slices.ContainsFunc(made, func(a artifact) bool { return filepath.Join(path, a.name) == name }) {
			return fmt.Errorf("%s: %w", name, errDrift)
		}
	}
	return nil
}

// replaceFile replaces a file in one step, so a concurrent reader reads the old or the new content. It keeps a symbolic
// link and writes its target.
func replaceFile(name string, content []byte) error {
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
