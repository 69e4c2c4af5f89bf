package policycommand

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// errUnformatted tells scripts that files are not as `policy fmt` would write them.
var errUnformatted = errors.New("not formatted")

// formatting is what flags say about it.
type formatting struct{ write, list bool }

func newFmt() *cobra.Command {
	var f formatting
	cmd := &cobra.Command{
		Use:     "fmt FILE...",
		Short:   "Write policies in one form",
		Example: "  entail policy fmt -w policies/\n  entail policy fmt -l policies/   # fails when a file would change",
		Args:    cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVarP(&f.write, "write", "w", false, "write the files, in place of standard output")
	cmd.Flags().BoolVarP(&f.list, "list", "l", false, "only list the files that would change, and fail if there are any")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		files, err := policyFiles(cmd.InOrStdin(), args)
		if err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		var errs []error
		for _, file := range files {
			errs = append(errs, f.format(cmd, file))
		}
		return errors.Join(errs...)
	}
	return cmd
}

func (f formatting) format(cmd *cobra.Command, file syntax.File) error {
	out, found := format.Source(file)
	if found.HasErrors() {
		return (&findings{format: asText}).write(cmd.ErrOrStderr(), found)
	}
	same := bytes.Equal(out, file.Content)
	switch {
	case f.list && same, f.write && same:
		return nil
	case f.list:
		return fmt.Errorf("%s: %w", file.Name, errUnformatted)
	case f.write && file.Name != "-":
		if err := replaceFile(file.Name, out); err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		return nil
	}
	if _, err := cmd.OutOrStdout().Write(out); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
