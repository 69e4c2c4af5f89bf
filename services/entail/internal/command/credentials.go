package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/entail-dev/entail/services/entail/internal/credential"
	"github.com/entail-dev/entail/services/entail/internal/exit"
)

func newCredentials() *cobra.Command {
	var dir, kubeconfig string
	var secrets bool
	var options credential.Options
	cmd := &cobra.Command{
		Use:   "credentials (--dir DIRECTORY | --secrets)",
		Short: "Make certificates, keys and passwords by which the parts of an installation know each other",
		Long: `credentials makes what is missing and keeps what is there: run it at every start. Certificates that
have less than a year left are made anew; start their servers again then.

It writes an authority, certificates of NATS, OpenFGA and Postgres, nkeys of all users of NATS with the
users' rights, OpenFGA's key, and the password of its database. Nothing of it is printed.`,
		Example: "  entail credentials --dir credentials",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` to keep them in, a folder for each who has some")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "keep them in Secrets of the namespace of services")
	cmd.Flags().BoolVar(&options.OpenSearch, "opensearch", false, "also certificates of an OpenSearch and its administrator")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "`file` that leads to the API server (default as kubectl, or in-cluster)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if (dir == "") == !secrets {
			return fmt.Errorf("%w: give --dir or --secrets", exit.ErrUsage)
		}
		keeper := credential.Keeper(credential.Dir(dir))
		if secrets {
			client, err := secretsClient(kubeconfig)
			if err != nil {
				return err
			}
			keeper = credential.NewSecrets(client)
		}
		changed, err := credential.Complete(cmd.Context(), keeper, time.Now(), options)
		for _, name := range changed {
			cmd.Println("made", name)
		}
		return err
	}
	return cmd
}

func secretsClient(kubeconfig string) (*corev1client.CoreV1Client, error) {
	cfg, err := clusterConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return corev1client.NewForConfig(cfg)
}
