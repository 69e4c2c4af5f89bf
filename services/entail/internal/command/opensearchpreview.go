package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	opensearchv1 "github.com/entail-dev/entail/gen/entail/opensearch/v1"
	"github.com/entail-dev/entail/gen/entail/opensearch/v1/opensearchv1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/input"
	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func newOpenSearchPreviewCommand(around IOStreams) *cobra.Command {
	var file string
	var deleted []string
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Preview the writes to a cluster if objects are applied or deleted",
		Long: `preview shows what would be written to a cluster if you applied or deleted objects, and which state the objects
would get. It reads no Secrets, so it does not check passwords.

` + ownRightHelp,
		Example: "  entail opensearch preview -f rolebinding.yaml\n  entail opensearch preview --delete OpensearchUserRoleBinding/readers",
		Args:    cobra.NoArgs,
	}
	q, of := newOpenSearchCall(cmd, around), bindOpenSearchClusterFlags(cmd)
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with objects of the cluster; - is standard input")
	cmd.Flags().StringSliceVar(&deleted, "delete", nil, "`KIND/NAME` of an object that would be deleted; separate several by commas")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		request := &opensearchv1.PreviewRequest{Cluster: of}
		writes, err := readOpenSearchWrites(cmd.InOrStdin(), file, deleted, request)
		if err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		if _, err := callAndPrint(cmd, q, opensearchv1connect.OpenSearchServiceClient.Preview, request, report.Printer.WriteOpenSearchPreview); err != nil {
			return err
		}
		return kubeconfigCluster{around.Getenv}.checkByDryRun(cmd, of.GetNamespace(), writes)
	}
	return cmd
}

// readOpenSearchWrites returns the writes to preview, and adds them to the request.
func readOpenSearchWrites(in io.Reader, file string, deleted []string, request *opensearchv1.PreviewRequest) (writes []dryRunWrite, err error) {
	var data []byte
	if file != "" {
		if data, err = input.ReadFileOrStdin(in, file, maxManifest+1); err != nil {
			return nil, fmt.Errorf("read objects: %w", err)
		}
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("read objects: more than %d bytes", maxManifest)
	}
	objects, err := devserver.DecodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	for _, u := range objects {
		kind, err := findOpenSearchKind(u.GetKind())
		if err != nil {
			return nil, err
		}
		manifest, err := u.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		request.Manifests = append(request.Manifests, manifest)
		writes = append(writes, dryRunWrite{kind: kind, name: u.GetName(), fields: map[string]any{"spec": u.Object["spec"]}})
	}
	for _, ref := range deleted {
		of, name, _ := strings.Cut(ref, "/")
		kind, err := findOpenSearchKind(of)
		if err != nil || name == "" {
			return nil, errors.Join(err, fmt.Errorf("%q is not KIND/NAME, as in OpensearchRole/logs", ref))
		}
		request.Deleted = append(request.Deleted, &opensearchv1.ObjectRef{Kind: of, Name: name})
		writes = append(writes, dryRunWrite{kind: kind, name: name, remove: true})
	}
	if len(writes) == 0 {
		return nil, errors.New("nothing to preview: give objects by -f or --delete")
	}
	return writes, nil
}

// findOpenSearchKind returns the kind of this name, if its objects are applied to OpenSearch.
func findOpenSearchKind(name string) (kinds.Kind, error) {
	for _, kind := range openSearchKinds() {
		if kind.Kind == name {
			return kind, nil
		}
	}
	return kinds.Kind{}, fmt.Errorf("kind %q asks for nothing in OpenSearch", name)
}
