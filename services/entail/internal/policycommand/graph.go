package policycommand

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/policy/graph"
)

func newGraphCommand() *cobra.Command {
	var (
		to string
		c  graphSelection
	)
	cmd := &cobra.Command{
		Use:   "graph FILE...",
		Short: "Print a drawing of types, relations and actions",
		Long: `graph draws types, relations, and the actions along them. If there are many types, it counts actions instead of
listing them, and draws a box for each union. --collapse '.*' draws one box for each service. --focus TYPE draws
the neighbours of a type.`,
		Example: "  entail policy graph policies/ > policy.svg\n  entail policy graph policies/ --as mermaid --types '^load'\n" +
			"  entail policy graph policies/ --focus loadbalancer --depth 2 --collapse '.*'",
		Args: cobra.MinimumNArgs(1),
	}
	f := newFindingsWriter(cmd)
	cmd.Flags().StringVar(&to, "as", "svg", "svg, dot or mermaid")
	cmd.Flags().StringVar(&c.types, "types", "", "only types that this `expression` matches, and their neighbours")
	cmd.Flags().StringVar(&c.actions, "actions", "", "only actions that this `expression` matches")
	cmd.Flags().StringVar(&c.owners, "owners", "", "only types of services whose names this `expression` matches")
	cmd.Flags().StringVar(&c.filter.Focus, "focus", "", "only this `type` and its neighbours")
	cmd.Flags().IntVar(&c.filter.Depth, "depth", 1, "maximum distance from --focus, in arrows")
	cmd.Flags().StringVar(&c.collapse, "collapse", "", "one box for each service whose name this `expression` matches, except the service of --focus")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.compileFilters(); err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		p, err := f.readCheckedPolicy(cmd, args)
		if err != nil {
			return err
		}
		if err := c.filter.Validate(p); err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		return writeDrawing(cmd, graph.FromPolicy(p, c.filter), to)
	}
	return cmd
}

func writeDrawing(cmd *cobra.Command, g *graph.Graph, to string) error {
	drawings := map[string]func() ([]byte, error){"svg": g.RenderSVG, "dot": g.RenderDOT, "mermaid": g.RenderMermaid}
	if drawings[to] == nil {
		return fmt.Errorf("%w: --as %q is none of svg, dot, mermaid", exit.ErrUsage, to)
	}
	drawing, err := drawings[to]()
	if err != nil {
		return err
	}
	if _, err := cmd.OutOrStdout().Write(drawing); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// graphSelection holds the flags that select what to draw.
type graphSelection struct {
	filter                           graph.Filter
	types, actions, owners, collapse string
}

// compileFilters compiles the expressions of the flags. An empty one does not filter.
func (c *graphSelection) compileFilters() error {
	for expression, compiled := range map[*string]**regexp.Regexp{
		&c.types: &c.filter.Types, &c.actions: &c.filter.Actions, &c.owners: &c.filter.Owners, &c.collapse: &c.filter.Collapse,
	} {
		if *expression == "" {
			continue
		}
		made, err := regexp.Compile(*expression)
		if err != nil {
			return fmt.Errorf("read filter: %w", err)
		}
		*compiled = made
	}
	return nil
}
