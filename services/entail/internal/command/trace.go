package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/gen/entail/sync/v1/syncv1connect"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/report"
	"github.com/entail-dev/entail/services/internal/backoff"
)

// pollInterval is the time between two requests of --wait.
const pollInterval = 100 * time.Millisecond

func newTraceCommand(around IOStreams) *cobra.Command {
	var (
		namespace string
		wait      time.Duration
	)
	cmd := &cobra.Command{
		Use:     "trace KIND/[NAMESPACE/]NAME",
		Short:   "Show when an object was observed, published and applied, and by which service",
		Example: "  entail trace store/demo\n  entail trace authorizationmodel/demo-documents --wait 10s -o json",
		Args:    cobra.ExactArgs(1),
	}
	q := newSyncCall(cmd, around)
	bindNamespaceFlag(cmd, around.Getenv, &namespace, "namespace of the object, when its kind has one")
	completeFirstArgument(cmd, kubeconfigCluster{around.Getenv}.objectArgumentCompleter(&namespace))
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long until every service has applied the newest state; fail if a service rejects it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		object, err := parseObjectArgument(args[0], namespace)
		if err != nil {
			return err
		}
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		trace, err := awaitObjectTrace(cmd.Context(), client, object, wait)
		if trace != nil {
			err = errors.Join(err, q.printAnswer(cmd.OutOrStdout(), trace, func(p report.Printer) { p.WriteObjectTrace(trace) }))
		}
		return err
	}
	return cmd
}

// awaitObjectTrace polls until every service is done with the newest state, or patience ends. With no patience it sends one
// request. It returns the newest trace even with an error.
func awaitObjectTrace(ctx context.Context, client syncv1connect.SyncServiceClient, o objectArgument,
	patience time.Duration,
) (*syncv1.TraceObjectResponse, error) {
	request := &syncv1.TraceObjectRequest{Resource: o.kind, Namespace: o.namespace, Name: o.name}
	if patience <= 0 {
		return client.TraceObject(ctx, request)
	}
	deadline := time.Now().Add(patience)
	var newest *syncv1.TraceObjectResponse
	for {
		trace, err := client.TraceObject(ctx, request)
		if err == nil {
			newest = trace
			if waiting, verdict := traceVerdict(trace); !waiting {
				return trace, verdict
			}
		} else if !isRetryable(err) {
			return newest, err
		}
		if time.Now().After(deadline) {
			return newest, cmp.Or(err, error(timeoutError{fmt.Errorf("%s/%s was not applied by every service within %s", o.kind, o.name, patience)}))
		}
		if !backoff.Sleep(ctx, pollInterval) {
			return newest, fmt.Errorf("wait for %s/%s: %w", o.kind, o.name, ctx.Err())
		}
	}
}

// timeoutError means that the services were not done in time. The server itself has answered.
type timeoutError struct{ error }

// ExitCode returns the code of a server without an answer.
func (timeoutError) ExitCode() int { return exit.Unavailable }

// unknownKindHeader marks the error of the watcher about a kind that it does not follow.
const unknownKindHeader = "Entail-Unknown-Kind"

// isRetryable reports whether the object may still appear or the server may still start.
func isRetryable(err error) bool {
	code := connect.CodeOf(err)
	if answer, ok := errors.AsType[*connect.Error](err); ok && answer.Meta().Get(unknownKindHeader) != "" {
		return false
	}
	return code == connect.CodeNotFound || code == connect.CodeUnavailable
}

// traceVerdict reports whether a service is not done with the newest state. verdict joins the errors of services that
// rejected it or gave it up.
func traceVerdict(m *syncv1.TraceObjectResponse) (waiting bool, verdict error) {
	for _, step := range m.GetSteps() {
		result := step.GetResult()
		switch outcome := result.GetOutcome(); {
		case !step.GetCurrent(), outcome == eventv1.Outcome_OUTCOME_PENDING, outcome == eventv1.Outcome_OUTCOME_RETRYING:
			waiting = true
		case outcome == eventv1.Outcome_OUTCOME_REJECTED, outcome == eventv1.Outcome_OUTCOME_DEAD_LETTERED:
			verdict = errors.Join(verdict, fmt.Errorf("%s could not apply it: %s", result.GetService(), result.GetMessage()))
		}
	}
	return waiting || len(m.GetSteps()) == 0, verdict
}
