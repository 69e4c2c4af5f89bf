package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/policycommand"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

// maxModule is the largest module that PreviewModel accepts, in bytes.
const maxModule = 256 << 10

// errRejected makes the command fail if the module would be rejected.
var errRejected = errors.New("the module would be rejected")

func newModelCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "model", Short: "Show, preview and compare the models of Stores"}
	cmd.AddCommand(newModelShowCommand(around), newModelPreviewCommand(around), newModelDiffCommand(around))
	return cmd
}

func newModelShowCommand(around IOStreams) *cobra.Command {
	var provenance bool
	cmd := &cobra.Command{
		Use:     "show STORE",
		Short:   "Show the model that is in force",
		Example: "  entail model show demo\n  entail model show demo --provenance",
		Args:    cobra.ExactArgs(1),
	}
	q := newStoreCall(cmd, around)
	cmd.Flags().BoolVar(&provenance, "provenance", false, "show the object that each type and relation comes from")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		table := report.Printer.WriteModel
		if provenance {
			table = report.Printer.WriteModelProvenance
		}
		_, err := callAndPrint(cmd, q, storev1connect.StoreServiceClient.GetModel, &storev1.GetModelRequest{Name: args[0]}, table)
		return err
	}
	return cmd
}

func newModelPreviewCommand(around IOStreams) *cobra.Command {
	var file, replaces string
	cmd := &cobra.Command{
		Use:   "preview STORE -f FILE",
		Short: "Preview the effect of a module or of PolicyDocuments on a model",
		Long: `preview shows how the model of a Store would change, and whether the change would be accepted. FILE is a module in
OpenFGA's language, or a file or folder of policies. In policies, a manifest replaces the PolicyDocument that it
names; all other files count as one new document. The columns list types of subjects, not users.`,
		Example: "  entail model preview demo -f documents.fga\n  entail model preview demo -f documents.fga --replaces demo-documents\n" +
			"  entail model preview demo -f policy.yaml\n  entail model preview demo -f policy.yaml --replaces team-a/policy",
		Args: cobra.ExactArgs(1),
	}
	q := newStoreCall(cmd, around)
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with a module, or file or folder with policies; - is standard input")
	cmd.Flags().StringVar(&replaces, "replaces", "",
		"`name` of the AuthorizationModel whose module it replaces, - for the Store's core module, or namespace/name of a PolicyDocument")
	_ = cmd.MarkFlagRequired("filename") // This cannot fail: the flag is defined above.
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		documents, module, err := policycommand.ReadDocuments(cmd.InOrStdin(), file)
		if err == nil && documents == nil && (len(module) == 0 || len(module) > maxModule) {
			err = fmt.Errorf("%w: read module: %s holds nothing, or more than %d bytes", exit.ErrUsage, file, maxModule)
		}
		if err != nil {
			return err
		}
		request := &storev1.PreviewModelRequest{Name: args[0], Module: string(module), Documents: documents, Replaces: replaces}
		preview, err := callAndPrint(cmd, q, storev1connect.StoreServiceClient.PreviewModel, request, report.Printer.WriteModelPreview)
		if err == nil && !preview.GetAccepted() {
			err = errRejected
		}
		return err
	}
	return cmd
}

func newModelDiffCommand(around IOStreams) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:     "diff STORE",
		Short:   "Show the differences between the model in force and the declared one, or between two models",
		Example: "  entail model diff demo\n  entail model diff demo --from 01J8... --to 01J9...",
		Args:    cobra.ExactArgs(1),
	}
	q := newStoreCall(cmd, around)
	cmd.Flags().StringVar(&from, "from", "", "`id` of the first model (default: the model in force)")
	cmd.Flags().StringVar(&to, "to", "", "`id` of the second model (default: the declared model)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request := &storev1.DiffModelRequest{Name: args[0], FromModelId: from, ToModelId: to}
		_, err := callAndPrint(cmd, q, storev1connect.StoreServiceClient.DiffModel, request,
			func(p report.Printer, m *storev1.DiffModelResponse) { p.WriteModelChanges(m.GetChanges()) })
		return err
	}
	return cmd
}
