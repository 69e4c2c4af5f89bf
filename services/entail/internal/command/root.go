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
	root := newRoot(around)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		// Cobra validates these as well, but only after this hook.
		err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
		started = err == nil
		return err
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exit.OK
	}
	if !started {
		// Every error before a command runs is an error of the command line.
		err = fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	if !errors.Is(err, exit.ErrTold) {
		writeFailure(around.Err, args, err)
	}
	return exit.Code(err)
}

// Root returns the whole command line, for callers that walk through it.
func Root(around IOStreams) *cobra.Command { return newRoot(around) }

func newRoot(around IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "entail",
		Short: "Authorization declared in Kubernetes, live in OpenFGA",
		Long: "entail runs the whole system on one machine, and tells where a change is now.\n\n" +
			exit.Help,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(around.In)
	root.SetOut(around.Out)
	root.SetErr(around.Err)
	root.AddCommand(
		newUp(around), newStatus(around), newTrace(around), newDeadLetters(around), newReplay(around),
		newInferences(around), newExplain(around), newWhoHas(around), newWhatHas(around), newPreview(around), newModel(around), newTuples(around),
		newCanI(around), newWhoCan(around), newWhatCan(around), newIAM(around), newOpenSearch(around),
		newManifests(), newInstall(), newUninstall(), newCredentials(), policycommand.New(policyServer(around)), newVersion(),
	)
	return root
}
