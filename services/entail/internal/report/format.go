package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// Format is the format of an answer, the value of --output.
type Format string

// Formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats returns all formats, for help and completion.
func Formats() []string { return []string{string(Table), string(JSON), string(YAML)} }

// String returns the value of the flag.
func (f *Format) String() string { return string(*f) }

// Type returns the placeholder of the value in the help.
func (f *Format) Type() string { return "FORMAT" }

// Set accepts one of [Formats].
func (f *Format) Set(value string) error {
	if !slices.Contains(Formats(), value) {
		return fmt.Errorf("%q is none of %s", value, strings.Join(Formats(), ", "))
	}
	*f = Format(value)
	return nil
}

// BindFlag defines the flag --output for f.
func (f *Format) BindFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "table, json or yaml")
	// This cannot fail: the flag is defined above.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// WriteMessage writes m as JSON or YAML with the field names of the contract.
func WriteMessage(w io.Writer, format Format, m proto.Message) error {
	compact, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return WriteDocument(w, format, compact)
}

// WriteDocument writes a JSON document as indented JSON or as YAML.
func WriteDocument(w io.Writer, format Format, document []byte) error {
	var out []byte
	if format == YAML {
		converted, err := yaml.JSONToYAML(document)
		if err != nil {
			return fmt.Errorf("convert answer to YAML: %w", err)
		}
		out = converted
	} else {
		var indented bytes.Buffer
		if err := json.Indent(&indented, document, "", "  "); err != nil {
			return fmt.Errorf("indent answer: %w", err)
		}
		out = append(indented.Bytes(), '\n')
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
