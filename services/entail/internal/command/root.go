// Package command is the command line of entail, with about one file for each command. Commands that query are clients
// of the query APIs and print only their answers. `up` runs the servers.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/policycommand"
)

// IOStreams holds everything that a command reads from its environment besides its arguments.
type IOStreams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
}

// Run executes the command line and returns the exit code. Errors go to around.Err.
func Run(ctx context.Context, args []string, around IOStreams) int {
	started := false
	root := newRootCommand(around)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		// Cobra validates these as well, but only after this hook.
		err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
		started = err == nil
		return err
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.OK
	}
	if !started {
		// Every error before a command runs is an error of the command line.
		err = fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	if !errors.Is(err, exit.ErrTold) {
		writeFailure(around.Err, args, describeFailure(cmd, err), exit.Code(err))
	}
	return exit.Code(err)
}

// Root returns the whole command line, for callers that walk through it.
func Root(around IOStreams) *cobra.Command { return newRootCommand(around) }

func newRootCommand(around IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "entail",
		Short: "Authorization declared in Kubernetes and applied to OpenFGA, RBAC and OpenSearch",
		Long: "entail runs the services, shows who may do what and why, and follows a change to its effect.\n\n" +
			exit.Help,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(around.In)
	root.SetOut(around.Out)
	root.SetErr(around.Err)
	addCommandGroup(root, "Run and install:", newUpCommand(around), newInstallCommand(), newUninstallCommand(), newManifestsCommand(),
		newCredentialsCommand(), newVersionCommand())
	addCommandGroup(root, "Ask who may do what, and why:", newCheckCommand(around), newWhyCommand(around), newListObjectsCommand(around),
		newListUsersCommand(around), newExpandCommand(around), newBatchCheckCommand(around),
		newCanICommand(around), newWhoCanCommand(around), newWhatCanCommand(around),
		newWhoHasCommand(around), newWhatHasCommand(around),
		newExplainCommand(around), newPreviewCommand(around))
	addCommandGroup(root, "Look at declared objects:", newModelCommand(around), newTuplesCommand(around), newInferencesCommand(around),
		newIAMCommand(around), newOpenSearchCommand(around),
		policycommand.New(policyServiceConnector(around)))
	addCommandGroup(root, "Follow changes:", newStatusCommand(around), newTraceCommand(around), newDeadLettersCommand(around),
		newReplayCommand(around), newBusCommand(around))
	return root
}

// addCommandGroup adds commands under a title of the help.
func addCommandGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}
