package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/entail/internal/exit"
)

type failureDocument struct {
	Error    string `json:"error"`
	ExitCode int    `json:"exitCode"`
}

// describeFailure returns the error that a command ended with, and a hint if the user can act on it.
func describeFailure(cmd *cobra.Command, err error) string {
	if errors.Is(err, exit.ErrUsage) {
		return describeUsage(cmd, err)
	}
	// `entail up` runs the service of these commands only with a flag.
	needsFlag := strings.HasPrefix(cmd.CommandPath(), "entail opensearch ")
	if answer, ok := errors.AsType[*connect.Error](err); ok && needsFlag && answer.Code() == connect.CodeUnavailable {
		return answer.Message() + "\nis `entail up --opensearch` running? --server names another server"
	}
	return describeError(err)
}

// describeUsage adds the usage line of the command. It puts the names that Cobra suggests on one line.
func describeUsage(cmd *cobra.Command, err error) string {
	text := err.Error()
	if before, names, ok := strings.Cut(text, "\n\nDid you mean this?\n"); ok {
		text = before + "; did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
	}
	if cmd.Runnable() {
		text += "; usage: " + cmd.UseLine()
	}
	return text + " (--help shows how)"
}

// writeFailure writes the error of a command as text, or as JSON if the command line selects output for programs.
func writeFailure(w io.Writer, args []string, message string, code int) {
	text := "entail: " + message
	if isOutputForPrograms(args) {
		if document, wrong := json.Marshal(failureDocument{message, code}); wrong == nil {
			text = string(document)
		}
	}
	_, _ = fmt.Fprintln(w, text)
}

// isOutputForPrograms reads --output even from an invalid command line. It writes JSON for yaml as well, because JSON is YAML.
func isOutputForPrograms(args []string) bool {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	output := flags.StringP("output", "o", "", "")
	_ = flags.Parse(args) // Cobra reports errors of the command line.
	return slices.Contains([]string{"json", "yaml", "sarif"}, *output)
}
