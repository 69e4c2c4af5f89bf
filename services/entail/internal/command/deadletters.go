package command

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

const defaultLetters = 100

func newDeadLettersCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deadletters",
		Short: "Show messages that a service gave up on, and discard them",
	}
	cmd.AddCommand(newDeadLettersListCommand(around), newDeadLettersShowCommand(around), newDeadLettersDiscardCommand(around))
	return cmd
}

func newDeadLettersListCommand(around IOStreams) *cobra.Command {
	var (
		service string
		limit   int
	)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List dead letters, newest first",
		Example: "  entail deadletters list\n  entail deadletters list --service tuple-sync --limit 10",
		Args:    cobra.NoArgs,
	}
	q := newSyncCall(cmd, around)
	cmd.Flags().StringVar(&service, "service", "", "only dead letters of this service")
	bindLimitFlag(cmd, &limit, defaultLetters, "maximum number of dead letters")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		letters := &syncv1.ListDeadLettersResponse{}
		letters.DeadLetters, letters.NextPageToken, err = collectPages(limit, func(left int32, token string) ([]*syncv1.DeadLetter, string, error) {
			page, err := client.ListDeadLetters(cmd.Context(), &syncv1.ListDeadLettersRequest{Service: service, PageSize: left, PageToken: token})
			return page.GetDeadLetters(), page.GetNextPageToken(), err
		})
		if err != nil {
			return err
		}
		return q.printAnswer(cmd.OutOrStdout(), letters, func(p report.Printer) { p.WriteDeadLetters(letters.GetDeadLetters()) })
	}
	return cmd
}

func newDeadLettersShowCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show one dead letter with its message",
		Example: "  entail deadletters show 17",
		Args:    cobra.ExactArgs(1),
	}
	q := newSyncCall(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseLetterID(args[0])
		if err != nil {
			return err
		}
		_, err = callAndPrint(cmd, q, syncv1connect.SyncServiceClient.GetDeadLetter, &syncv1.GetDeadLetterRequest{Id: id}, report.Printer.WriteDeadLetter)
		return err
	}
	return cmd
}

func newDeadLettersDiscardCommand(around IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "discard ID",
		Short: "Remove a dead letter",
		Long: `discard removes a dead letter that needs no more attention. If its message was not a valid change, discard
also removes the message from NATS. It processes nothing; replay does.`,
		Example: "  entail deadletters discard 17",
		Args:    cobra.ExactArgs(1),
	}
	q := newSyncCall(cmd, around)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseLetterID(args[0])
		if err != nil {
			return err
		}
		_, err = callAndPrint(cmd, q, syncv1connect.SyncServiceClient.DiscardDeadLetter, &syncv1.DiscardDeadLetterRequest{Id: id},
			report.Printer.WriteDiscardResult)
		return err
	}
	return cmd
}

func parseLetterID(argument string) (uint64, error) {
	id, err := strconv.ParseUint(argument, 10, 64)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%w: %q is not the ID of a dead letter, see `entail deadletters list`", exit.ErrUsage, argument)
	}
	return id, nil
}
