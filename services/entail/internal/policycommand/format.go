package policycommand

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// errUnformatted is the error for a file that `policy fmt` would change.
var errUnformatted = errors.New("not formatted")

// formatRun holds the flags and the findings of `policy fmt`.
type formatRun struct {
	write, list bool
	as          string
	object      format.ManifestTarget
	findings    findingsWriter
	// found holds the findings in all files.
	found policy.Diagnostics
	// printed is true once a file has been written to standard output.
	printed bool
}

func newFmtCommand() *cobra.Command {
	var f formatRun
	cmd := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Print policies in the canonical form",
		Long: `fmt prints policies in the canonical form. With --as manifest it prints a PolicyDocument for each document. Its name
is the one in the comment "# Provided by NAME" at the beginning of the document.`,
		Example: "  entail policy fmt -w policies/\n  entail policy fmt -l policies/   # fails when a file would change\n" +
			"  entail policy fmt policies/ --as manifest --store demo | kubectl apply -f -",
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVarP(&f.write, "write", "w", false, "change the files instead of printing")
	cmd.Flags().BoolVarP(&f.list, "list", "l", false, "only list the files that would change, and exit with 1 if there are any")
	f.findings.bindOutputFlag(cmd)
	cmd.Flags().StringVar(&f.as, "as", asFile, "file, or manifest for PolicyDocuments")
	cmd.Flags().StringVar(&f.object.Store, "store", "", "`name` of the Store of a manifest")
	cmd.Flags().StringVarP(&f.object.Namespace, "namespace", "n", "", "`namespace` of a manifest")
	cmd.Flags().StringVar(&f.object.Name, "name", "", "`name` of the manifest, if the file has one document")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.validateFlags(); err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		files, err := readPolicyFiles(cmd.InOrStdin(), args)
		if err != nil {
			return err
		}
		var errs []error
		for _, file := range files {
			errs = append(errs, f.formatFile(cmd, file))
		}
		err = errors.Join(errs...)
		if len(f.found) == 0 {
			return err
		}
		return cmp.Or(err, f.findings.writeFindings(cmd.ErrOrStderr(), f.found))
	}
	return cmd
}

// Forms of documents, the values of --as.
const asFile, asManifest = "file", "manifest"

func (f *formatRun) validateFlags() error {
	switch {
	case f.as != asFile && f.as != asManifest:
		return fmt.Errorf("--as %q is none of file, manifest", f.as)
	case f.as == asFile && f.object != (format.ManifestTarget{}):
		return errors.New("--store, --namespace and --name apply only to manifests: add --as manifest")
	case f.as == asManifest && f.object.Store == "":
		return errors.New("a manifest names its Store: add --store NAME")
	}
	return nil
}

func (f *formatRun) formatSource(file syntax.File) ([]byte, policy.Diagnostics) {
	if f.as == asManifest {
		return format.ToManifests(file, f.object)
	}
	return format.Source(file)
}

func (f *formatRun) formatFile(cmd *cobra.Command, file syntax.File) error {
	out, found := f.formatSource(file)
	if found.HasErrors() {
		f.found, f.findings.files = f.found.Merge(found), append(f.findings.files, file)
		return nil
	}
	same := bytes.Equal(out, file.Content)
	switch {
	case f.list && same, f.write && same:
		return nil
	case f.list && f.findings.format == asText:
		return fmt.Errorf("%s: %w", file.Name, errUnformatted)
	case f.list:
		f.found = append(f.found, policy.Diagnostic{
			Place: policy.Place{File: file.Name}, Code: policy.CodeUnformatted, Severity: policy.Error,
			Message: "the file is " + errUnformatted.Error(), Hint: "have `entail policy fmt -w` write it",
		})
		return nil
	case f.write && file.Name != "-":
		if err := replaceFileAtomically(file.Name, out); err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		return nil
	}
	if f.printed && !bytes.HasPrefix(out, []byte("---")) {
		out = append([]byte("---\n"), out...)
	}
	f.printed = true
	if _, err := cmd.OutOrStdout().Write(out); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
