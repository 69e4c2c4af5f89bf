package command

import (
	"fmt"
	"strings"

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
