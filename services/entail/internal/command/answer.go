package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/entail/internal/report"
)

// apiCall holds the parts that every command for an API needs: the connection, the client and the output format.
type apiCall[Client any] struct {
	connection apiConnection
	client     func(connect.HTTPClient, string, ...connect.ClientOption) Client
	format     report.Format
	getenv     func(string) string
}

func newAPICall[Client any](
	cmd *cobra.Command, around IOStreams, of apiEndpoint, client func(connect.HTTPClient, string, ...connect.ClientOption) Client,
) *apiCall[Client] {
	q := &apiCall[Client]{connection: apiConnection{api: of}, client: client, format: report.Table, getenv: around.Getenv}
	q.connection.bindFlags(cmd.Flags(), around.Getenv)
	q.format.BindFlag(cmd)
	return q
}

// callAndPrint calls a method of the client and writes the answer.
func callAndPrint[Client, Request any, Answer proto.Message](
	cmd *cobra.Command, q *apiCall[Client], method func(Client, context.Context, Request) (Answer, error), request Request,
	table func(report.Printer, Answer),
) (Answer, error) {
	client, err := newAPIClient(&q.connection, q.client)
	if err != nil {
		return *new(Answer), err
	}
	answer, err := method(client, cmd.Context(), request)
	if err != nil {
		return answer, err
	}
	return answer, q.printAnswer(cmd.OutOrStdout(), answer, func(p report.Printer) { table(p, answer) })
}

// printAnswer writes m for programs, or the table for people.
func (q *apiCall[Client]) printAnswer(w io.Writer, m proto.Message, table func(report.Printer)) error {
	if q.format != report.Table {
		return report.WriteMessage(w, q.format, m)
	}
	out := bufio.NewWriter(w)
	table(report.Printer{
		Out: out, Color: supportsColor(w, q.getenv), Now: time.Now(),
		Zone: time.Local, //nolint:gosmopolitan // People read a clock on their wall.
	})
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// supportsColor reports whether w is a terminal that accepts color; NO_COLOR and TERM=dumb turn color off.
func supportsColor(w io.Writer, getenv func(string) string) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
