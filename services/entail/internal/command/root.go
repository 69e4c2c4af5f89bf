// Package command is the command line of entail: one file for each command, named
// after it. Commands that ask are clients of the query APIs and know no more than these
// answer; `up` runs the servers.
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

// Surroundings is all that a command sees of the world besides its arguments.
type Surroundings struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
}

// Run executes the command line and returns the exit code. Errors go to around.Err.
func Run(ctx context.Context, args []string, around Surroundings) int {
	started := false
	root := newRoot(around)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		// Cobra asks this, too, but only afterwards.
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
		// Whatever cobra refuses before it runs a command is about the command line.
		err = fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	if !errors.Is(err, exit.ErrTold) {
		writeFailure(around.Err, args, err)
	}
	return exit.Code(err)
}

// Root is the whole command line, for who goes through it.
func Root(around Surroundings) *cobra.Command { return newRoot(around) }

func newRoot(around Surroundings) *cobra.Command {
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
