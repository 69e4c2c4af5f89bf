package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/entail-dev/entail/services/entail/internal/exit"
)

type failure struct {
	Error    string `json:"error"`
	ExitCode int    `json:"exitCode"`
}

// writeFailure writes the error of a command: for people, or as JSON where the command line asks for output for programs.
func writeFailure(w io.Writer, args []string, err error) {
	text := "entail: " + describe(err)
	if forPrograms(args) {
		if document, wrong := json.Marshal(failure{describe(err), exit.Code(err)}); wrong == nil {
			text = string(document)
		}
	}
	_, _ = fmt.Fprintln(w, text)
}

// forPrograms reads --output even of a command line that cannot be read otherwise. JSON is YAML, too.
func forPrograms(args []string) bool {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	output := flags.StringP("output", "o", "", "")
	_ = flags.Parse(args) // What is wrong with it is told already.
	return slices.Contains([]string{"json", "yaml", "sarif"}, *output)
}
