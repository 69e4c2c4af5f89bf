package policycommand

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/policy/graph"
)

func newGraph() *cobra.Command {
	var to, types, acts, owner string
	cmd := &cobra.Command{
		Use:     "graph FILE...",
		Short:   "Draw types, relations, and the actions that flow along them",
		Example: "  entail policy graph policies/ > policy.svg\n  entail policy graph policies/ --as mermaid --types '^load'",
		Args:    cobra.MinimumNArgs(1),
	}
	f := newFindings(cmd)
	cmd.Flags().StringVar(&to, "as", "svg", "svg, dot or mermaid")
	cmd.Flags().StringVar(&types, "types", "", "only types that this `expression` matches, and their neighbours")
	cmd.Flags().StringVar(&acts, "actions", "", "only actions that this `expression` matches")
	cmd.Flags().StringVar(&owner, "owners", "", "only what services provide whose names this `expression` matches")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := newFilter(types, acts, owner)
		if err != nil {
			return fmt.Errorf("%w: %w", exit.ErrUsage, err)
		}
		p, err := f.policy(cmd, args)
		if err != nil {
			return err
		}
		return draw(cmd, graph.Of(p, filter), to)
	}
	return cmd
}

func draw(cmd *cobra.Command, g *graph.Graph, to string) error {
	drawings := map[string]func() ([]byte, error){"svg": g.SVG, "dot": g.DOT, "mermaid": g.Mermaid}
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

// newFilter compiles expressions; an empty one filters nothing.
func newFilter(types, actions, owners string) (graph.Filter, error) {
	var filter graph.Filter
	for expression, compiled := range map[*string]**regexp.Regexp{&types: &filter.Types, &actions: &filter.Actions, &owners: &filter.Owners} {
		if *expression == "" {
			continue
		}
		made, err := regexp.Compile(*expression)
		if err != nil {
			return filter, fmt.Errorf("read filter: %w", err)
		}
		*compiled = made
	}
	return filter, nil
}
