package command

import (
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/entail/internal/input"
)

// storeExitHelp is the part of the help about the exit codes of a yes-or-no question.
const storeExitHelp = `The exit code is 0 for yes and 1 for no. It is 3 if the Store, a type or a relation does not exist, and 5 if the answer
is undecided: OpenFGA ran out of time or steps.`

// listExitHelp is the part of the help about the exit codes of a list.
const listExitHelp = `The exit code is 3 if the Store, a type or a relation does not exist, and 5 if the list may be incomplete: OpenFGA ends a
list after 3 seconds or 1000 results, unless it is set to other limits.`

// maxContext bounds a file with the context of a question, in bytes.
const maxContext = 64 << 10

// storeQuestion holds the flags of a question about a Store.
type storeQuestion struct {
	contextText, after string
	tupleTexts         []string

	// context and tuples are the parsed values.
	context *structpb.Struct
	tuples  []*tuplev1.TupleKey
}

func (q *storeQuestion) bindFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&q.contextText, "context", "", "`JSON` object with values for the parameters of conditions, or @FILE with one")
	cmd.Flags().StringArrayVar(&q.tupleTexts, "tuple", nil,
		"ask as if the store also had this tuple: `\"USER RELATION OBJECT\"`, or \"USER RELATION OBJECT CONDITION JSON\"; repeatable")
	cmd.Flags().StringVar(&q.after, "after", "",
		"wait until the answer includes the present state or the deletion of store/NAME or authorizationmodel/NAME, as `KIND/NAME`")
}

// parseFlags parses the values of the flags.
func (q *storeQuestion) parseFlags(cmd *cobra.Command) error {
	text := []byte(q.contextText)
	if name, isFile := strings.CutPrefix(q.contextText, "@"); isFile {
		var err error
		text, err = input.ReadFileOrStdin(cmd.InOrStdin(), name, maxContext+1)
		if err == nil && len(text) > maxContext {
			err = fmt.Errorf("%s holds more than %d bytes", name, maxContext)
		}
		if err != nil {
			return fmt.Errorf("%w: --context: %w", exit.ErrUsage, err)
		}
	}
	if len(text) > 0 {
		q.context = &structpb.Struct{}
		if err := protojson.Unmarshal(text, q.context); err != nil {
			return fmt.Errorf("%w: --context is not a JSON object, such as {\"level\": 3}: %w", exit.ErrUsage, err)
		}
	}
	for _, text := range q.tupleTexts {
		key, err := parseContextualTuple(text)
		if err != nil {
			return err
		}
		q.tuples = append(q.tuples, key)
	}
	return nil
}

// parseContextualTuple parses "USER RELATION OBJECT", with a condition and its context as optional ends.
func parseContextualTuple(text string) (*tuplev1.TupleKey, error) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return nil, fmt.Errorf("%w: --tuple %q is not \"USER RELATION OBJECT\", such as \"user:beth viewer document:roadmap\"", exit.ErrUsage, text)
	}
	key := &tuplev1.TupleKey{User: fields[0], Relation: fields[1], Object: fields[2]}
	if len(fields) == 3 {
		return key, nil
	}
	key.Condition = &tuplev1.Condition{Name: fields[3]}
	if len(fields) > 4 {
		key.Condition.Context = &structpb.Struct{}
		if err := protojson.Unmarshal([]byte(strings.Join(fields[4:], " ")), key.GetCondition().GetContext()); err != nil {
			return nil, fmt.Errorf("%w: --tuple %q: the context of the condition is not a JSON object: %w", exit.ErrUsage, text, err)
		}
	}
	return key, nil
}

// undecidedError means that the server began an answer and did not finish it.
type undecidedError struct{ error }

// Error returns the message of the server.
func (u undecidedError) Error() string {
	text := u.error.Error()
	if answer, ok := errors.AsType[*connect.Error](u.error); ok {
		text = answer.Message()
	}
	if strings.Contains(text, "undecided") {
		return text
	}
	return "the answer is undecided: " + text
}

// ExitCode returns the code of an incomplete answer.
func (undecidedError) ExitCode() int { return exit.Undecided }

// errTruncated means that the output lacks a part, and contains a note about it.
var errTruncated = errors.Join(exit.ErrTold, undecidedError{errors.New("undecided")})

// truncatedError returns err, or else an error if the answer lacks a part. The output contains a note about it.
func truncatedError(answer interface{ GetTruncated() bool }, err error) error {
	if err == nil && answer.GetTruncated() {
		return errTruncated
	}
	return err
}

// withUndecided marks errors of answers that were cut off or took too long.
func withUndecided(err error) error {
	switch connect.CodeOf(err) {
	case connect.CodeDeadlineExceeded, connect.CodeResourceExhausted, connect.CodeAborted:
		return undecidedError{err}
	default:
		return err
	}
}
