package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/entail-dev/entail/services/entail/internal/credential"
	"github.com/entail-dev/entail/services/entail/internal/exit"
)

func newCredentialsCommand() *cobra.Command {
	var dir, kubeconfig string
	var secrets bool
	var options credential.Options
	cmd := &cobra.Command{
		Use:   "credentials (--dir DIRECTORY | --secrets)",
		Short: "Install certificates, keys and passwords for the parts of an installation",
		Long: `credentials creates the files that are missing, and keeps the others: run it at every start. It replaces
certificates that expire within a year; restart their servers then.

It writes a certificate authority, certificates for NATS, OpenFGA and Postgres, an nkey for each NATS user with
the rights of the user, the key of OpenFGA, and the password of its database. It prints none of them.`,
		Example: "  entail credentials --dir credentials",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` to write to, with one folder for each part")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "write to Secrets in the namespace of the services")
	cmd.Flags().BoolVar(&options.OpenSearch, "opensearch", false, "also create certificates for OpenSearch and its administrator")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster (default as kubectl, or in-cluster)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if (dir == "") == !secrets {
			return fmt.Errorf("%w: give --dir or --secrets", exit.ErrUsage)
		}
		keeper := credential.Keeper(credential.DirKeeper(dir))
		if secrets {
			client, err := newSecretsClient(kubeconfig)
			if err != nil {
				return err
			}
			keeper = credential.NewSecretKeeper(client)
		}
		changed, err := credential.CreateMissing(cmd.Context(), keeper, time.Now(), options)
		for _, name := range changed {
			cmd.Println("made", name)
		}
		return err
	}
	return cmd
}

func newSecretsClient(kubeconfig string) (*corev1client.CoreV1Client, error) {
	cfg, err := loadRESTConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return corev1client.NewForConfig(cfg)
}
