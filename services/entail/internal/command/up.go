package command

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/allinone"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newUpCommand(around IOStreams) *cobra.Command {
	cfg, format := allinone.Defaults(), report.Table
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all services on this machine until Ctrl-C",
		Long: `up runs NATS, OpenFGA, a Kubernetes API server and every service on loopback. It keeps their state in
--state-dir. Ctrl-C stops them in order; a second Ctrl-C stops them at once. This mode is for development:
everybody on this machine can use OpenFGA and the query APIs.

To use a cluster of your own, give --kubeconfig or --use-cluster. The variable KUBECONFIG alone has no effect.

--set passes a flag to a service. You can repeat it. A wrong name prints the names of all flags.

Every service has its own account, with the rights that "entail manifests base/SERVICE" prints. In your
cluster you need the right to impersonate serviceaccounts in the namespace entail-system. Without it the
services act as you, and up creates no accounts.

Webhooks check the authors of ImpliedRoles and of RoleBindings that imply others. The API server of your cluster
must reach this machine at --admission-url. Without that flag no ImpliedRoles are in force there. The
webhooks stay when up ends, and only administrators can write then. To remove them, delete the
ValidatingWebhookConfiguration entail-implied-role.`,
		Example: "  entail up --samples builtin\n  entail up --set tuple-sync.allow-member-tuples-enabled=true --set store-sync.resync=1m",
		Args:    cobra.NoArgs,
	}
	cfg.BindFlags(cmd.Flags())
	format.BindFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg.Progress = cmd.ErrOrStderr()
		cfg.Ready = func(e allinone.Endpoints) error {
			if format == report.Table {
				printWelcome(cmd, e)
				return nil
			}
			document, err := json.Marshal(e)
			if err != nil {
				return fmt.Errorf("encode endpoints: %w", err)
			}
			return report.WriteDocument(cmd.OutOrStdout(), format, document)
		}
		if env := around.Getenv("KUBECONFIG"); env != "" && !cfg.HasExternalCluster() {
			_, _ = fmt.Fprintf(cfg.Progress, "KUBECONFIG (%s) is not used; --use-cluster runs against that cluster\n", env)
		}
		return allinone.Run(cmd.Context(), cfg)
	}
	return cmd
}

// printWelcome prints the addresses of all parts, and first commands to try.
func printWelcome(cmd *cobra.Command, e allinone.Endpoints) {
	cmd.Printf(`
Entail is ready after %.1f s. State and logs are in %s.

  Kubernetes         %s
  NATS               %s
  OpenFGA            %s (gRPC %s)
  SyncService        %s (watcher)
  StoreService       %s (store-sync)
  TupleService       %s (tuple-sync)
  InferenceService   %s (implied-role)
  AccessService      %s (webhook)
`, e.Seconds, e.StateDir, e.Kubernetes, e.NATS, e.OpenFGAHTTP, e.OpenFGA, e.SyncService, e.StoreService, e.TupleService, e.InferenceService, e.AccessService)
	if e.OpenSearch != "" {
		cmd.Printf("  OpenSearchService  %s (opensearch-sync)\n", e.OpenSearchService)
		cmd.Printf("  OpenSearch         %s (user admin, password in %s)\n", e.OpenSearch, e.OpenSearchPassword)
	}
	if e.Kubeconfig != "" {
		cmd.Printf("\nFor kubectl, in another terminal:\n\n  export KUBECONFIG=%s\n", e.Kubeconfig)
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		cmd.Printf("\nThere is no kubectl here: `make kubectl` builds bin/kubectl.\n")
	}
	cmd.Printf(`
Then try:

  %[2]s manifests samples/store.yaml | kubectl apply -f -
  kubectl get stores,authorizationmodels
  %[2]s trace store/demo --server %[3]s
  curl -s %[1]s/entail.tuple.v1.TupleService/Check -H 'Content-Type: application/json' \
    -d '{"store":"demo","key":{"object":"document:roadmap","relation":"viewer","user":"user:beth"}}'
`, e.TupleService, os.Args[0], e.SyncService)
	if e.OpenSearch != "" {
		cmd.Printf(`
  %[2]s manifests samples/opensearch.yaml | kubectl apply -f -
  kubectl get opensearchusers,opensearchroles,opensearchuserrolebindings
  %[2]s opensearch mapping logs-reader --server %[1]s
`, e.OpenSearchService, os.Args[0])
	}
	cmd.Printf("\nThis mode is for development: everybody on this machine can use OpenFGA and the query APIs.\n")
	cmd.Printf("Ctrl-C stops everything. The next start continues with the same state.\n")
}
