package command

import "github.com/spf13/cobra"

// Root is the whole command line, for tests that go through it.
func Root(around Surroundings) *cobra.Command { return newRoot(around) }
