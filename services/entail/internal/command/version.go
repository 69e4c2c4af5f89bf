package command

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/report"
)

// version is what the toolchain recorded in the binary.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion() *cobra.Command {
	format := report.Table
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell which build this is",
		Args:  cobra.NoArgs,
	}
	format.Bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := readVersion(debug.ReadBuildInfo())
		if format == report.Table {
			cmd.Println(v)
			return nil
		}
		document, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode version: %w", err)
		}
		return report.Document(cmd.OutOrStdout(), format, document)
	}
	return cmd
}

func readVersion(info *debug.BuildInfo, ok bool) version {
	v := version{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Revision = setting.Value
		case "vcs.modified":
			v.Modified = setting.Value == "true"
		}
	}
	return v
}

// String is one line for people.
func (v version) String() string {
	s := "entail " + v.Version
	if v.Revision != "" {
		s += " " + v.Revision
	}
	if v.Modified {
		s += " modified"
	}
	return s + " " + v.Go + " " + v.Platform
}
