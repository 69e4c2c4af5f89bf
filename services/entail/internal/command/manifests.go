package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/deploy"
	"github.com/entail-dev/entail/services/entail/internal/exit"
)

func newManifestsCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "manifests [PATH...]",
		Short: "Print the CRDs, admission policies, accounts and samples in this program",
		Long: `manifests lists the files that this program holds. With a path it prints that file, or all *.yaml files of that
folder. With --dir it writes all files, for kubectl apply -k.`,
		Example: "  entail manifests crd | kubectl apply -f -\n  entail manifests samples/store.yaml\n  entail manifests --dir deploy",
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` to write all files to; existing files are not overwritten")
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		switch {
		case dir != "" && len(paths) > 0:
			return fmt.Errorf("%w: --dir writes all files: leave the paths out", exit.ErrUsage)
		case dir != "":
			return writeManifests(dir)
		case len(paths) > 0:
			return printManifests(cmd, paths)
		}
		return fs.WalkDir(deploy.Files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				cmd.Println(name)
			}
			return err
		})
	}
	return cmd
}

func writeManifests(dir string) error {
	err := os.CopyFS(dir, deploy.Files)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write manifests: %w: choose a --dir without it", err)
	}
	return err
}

// printManifests prints several files as one stream of YAML documents.
func printManifests(cmd *cobra.Command, paths []string) error {
	var documents []string
	for _, given := range paths {
		place := path.Clean(given)
		pattern := place
		if info, err := fs.Stat(deploy.Files, place); err == nil && info.IsDir() {
			pattern = path.Join(place, "*.yaml")
		}
		files, err := fs.Glob(deploy.Files, pattern)
		files = slices.DeleteFunc(files, func(file string) bool { return pattern != place && path.Base(file) == "kustomization.yaml" })
		if err != nil || len(files) == 0 {
			return fmt.Errorf("%w: no manifest is at %.200q: without a path, all are listed", exit.ErrUsage, given)
		}
		for _, file := range files {
			text, err := fs.ReadFile(deploy.Files, file)
			if err != nil {
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
			}
			documents = append(documents, strings.TrimPrefix(string(text), "---\n"))
		}
	}
	cmd.Print(strings.Join(documents, "---\n"))
	return nil
}
