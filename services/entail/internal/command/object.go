package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entail-dev/entail/services/entail/internal/exit"
)

// object is an argument KIND/NAME.
type object struct {
	kind, namespace, name string
}

func parseObject(argument, namespace string) (object, error) {
	kind, name, ok := strings.Cut(argument, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return object{}, fmt.Errorf("%w: %q is not KIND/NAME, such as store/demo", exit.ErrUsage, argument)
	}
	return object{kind: kind, namespace: namespace, name: name}, nil
}

// completeKind offers the kinds that the services follow today.
func completeKind(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"store/", "authorizationmodel/"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
