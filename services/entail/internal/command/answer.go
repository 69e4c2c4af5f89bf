package command

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/entail/internal/report"
)

// question is what every command has that asks an API: where to ask, and how to write
// the answer.
type question struct {
	connection connection
	format     report.Format
	getenv     func(string) string
}

func newQuestion(cmd *cobra.Command, around Surroundings, of api) *question {
	q := &question{connection: connection{api: of}, format: report.Table, getenv: around.Getenv}
	q.connection.bindFlags(cmd.Flags(), around.Getenv)
	q.format.Bind(cmd)
	return q
}

// write writes the answer: m for programs, or the table for people.
func (q *question) write(w io.Writer, m proto.Message, table func(report.Page) error) error {
	if q.format != report.Table {
		return report.Message(w, q.format, m)
	}
	return table(report.Page{
		Out: w, Color: colorful(w, q.getenv), Now: time.Now(),
		Zone: time.Local, //nolint:gosmopolitan // People read a clock on their wall.
	})
}

// colorful tells whether w is a terminal whose owner has not asked for no color.
func colorful(w io.Writer, getenv func(string) string) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
