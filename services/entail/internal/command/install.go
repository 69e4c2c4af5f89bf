package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/deploy"
	"github.com/entail-dev/entail/services/internal/devserver"
)

func newInstallCommand() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install kinds, admission policies, roles and accounts into a cluster",
		Long: `install applies the manifests in this program (entail manifests) to a cluster: all kinds, admission policies,
roles for people, and one account for each service. You must be an administrator of the cluster. Run it again
to upgrade. The command returns when the API server serves everything. It does not start the services: use
deploy/overlays or docker-compose.yaml.`,
		Example: "  entail install --kubeconfig admin.kubeconfig",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster (default as kubectl, or in-cluster)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadRESTConfig(kubeconfig)
		if err != nil {
			return err
		}
		for _, step := range []struct {
			what  string
			apply func(context.Context, *rest.Config, fs.FS) error
		}{
			{"kinds and policies of admission", devserver.ApplyManifests},
			{"accounts of services", devserver.ApplyServiceAccounts},
			{"roles for people", devserver.ApplyUserRoles},
		} {
			if err := step.apply(cmd.Context(), cfg, deploy.Files); err != nil {
				return err
			}
			cmd.Println("applied", step.what)
		}
		return nil
	}
	return cmd
}

// loadRESTConfig returns the configuration of a kubeconfig file, or the one that kubectl would use.
func loadRESTConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no kubeconfig found: use --kubeconfig, correct KUBECONFIG, or run in a cluster")
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return cfg, nil
}
