package command

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/input"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

// maxBatch bounds the file of a batch, in bytes.
const maxBatch = 1 << 20

func newBatchCheckCommand(around IOStreams) *cobra.Command {
	var question storeQuestion
	cmd := &cobra.Command{
		Use:   "batch-check STORE FILE",
		Short: "Check many questions about a Store, one in each line of a file",
		Long: "batch-check asks each question in a file. A line is USER RELATION OBJECT; empty lines and lines that begin with # are\n" +
			"skipped. FILE - is standard input. --context and --tuple apply to every question.\n\n" +
			"The exit code is the highest of all answers: 0 if all are yes, 1 for a no, 3 for an unknown type or relation, 5 for an\n" +
			"undecided answer.",
		Example: "  entail batch-check demo questions.txt\n  entail batch-check demo questions.txt -o json",
		Args:    cobra.ExactArgs(2),
	}
	q := newTupleCall(cmd, around)
	question.bindFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := question.parseFlags(cmd); err != nil {
			return err
		}
		keys, err := readQuestions(cmd, args[1])
		if err != nil {
			return err
		}
		client, err := newAPIClient(&q.connection, q.client)
		if err != nil {
			return err
		}
		var answers []report.BatchAnswer
		worst, after := exit.OK, question.after
		for _, key := range keys {
			answer, err := client.Check(cmd.Context(), &tuplev1.CheckRequest{
				Store: args[0], Key: key, Context: question.context, ContextualTuples: question.tuples, After: after,
				HigherConsistency: question.after != "",
			})
			if err == nil {
				after = "" // One wait is enough. The caches of OpenFGA may still lack the object.
			}
			line, code, err := batchAnswer(key, answer, err)
			if err != nil {
				return err
			}
			answers, worst = append(answers, line), max(worst, code)
		}
		if q.format != report.Table {
			document, err := json.Marshal(answers)
			if err == nil {
				err = report.WriteDocument(cmd.OutOrStdout(), q.format, document)
			}
			return cmp.Or(err, batchError(worst))
		}
		return cmp.Or(q.printAnswer(cmd.OutOrStdout(), nil, func(p report.Printer) { p.WriteBatchAnswers(answers) }), batchError(worst))
	}
	return cmd
}

// readQuestions reads the questions in a file.
func readQuestions(cmd *cobra.Command, file string) (keys []*tuplev1.TupleKey, err error) {
	text, err := input.ReadFileOrStdin(cmd.InOrStdin(), file, maxBatch+1)
	if err == nil && len(text) > maxBatch {
		err = fmt.Errorf("%s holds more than %d bytes", file, maxBatch)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read questions: %w", exit.ErrUsage, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxBatch)
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case len(fields) != 3:
			return nil, fmt.Errorf("%w: %s:%d: %q is not USER RELATION OBJECT", exit.ErrUsage, file, number, lines.Text())
		default:
			keys = append(keys, &tuplev1.TupleKey{User: fields[0], Relation: fields[1], Object: fields[2]})
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: %s contains no questions", exit.ErrUsage, file)
	}
	return keys, lines.Err()
}

// batchAnswer returns the answer to one question, and its exit code. An error about the Store or the server ends the
// batch.
func batchAnswer(key *tuplev1.TupleKey, answer *tuplev1.CheckResponse, err error) (report.BatchAnswer, int, error) {
	line := report.BatchAnswer{User: key.GetUser(), Relation: key.GetRelation(), Object: key.GetObject(), Answer: "no"}
	undecided, isUndecided := errors.AsType[undecidedError](withUndecided(err))
	switch {
	case isUndecided:
		line.Answer, line.Message = "undecided", undecided.Error()
		return line, exit.Undecided, nil
	case connect.CodeOf(err) == connect.CodeNotFound || connect.CodeOf(err) == connect.CodeInvalidArgument:
		line.Answer, line.Message = "error", describeError(err)
		return line, exit.Code(err), nil
	case err != nil:
		return line, 0, err
	case answer.GetAllowed():
		line.Answer = "yes"
		return line, exit.OK, nil
	default:
		return line, exit.Failure, nil
	}
}

// batchError returns an error with an exit code whose text the output contains.
func batchError(code int) error {
	if code == exit.OK {
		return nil
	}
	return errors.Join(exit.ErrTold, codeError(code))
}

// codeError is an error with an exit code alone.
type codeError int

func (c codeError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// ExitCode returns the code.
func (c codeError) ExitCode() int { return int(c) }
