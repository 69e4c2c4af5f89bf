package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/entail/internal/exit"
)

type failureDocument struct {
	Error    string `json:"error"`
	ExitCode int    `json:"exitCode"`
}

// writeFailure writes the error of a command as text, or as JSON if the command line selects output for programs.
func writeFailure(w io.Writer, args []string, err error) {
	text := "entail: " + describeError(err)
	if isOutputForPrograms(args) {
		if document, wrong := json.Marshal(failureDocument{describeError(err), exit.Code(err)}); wrong == nil {
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
