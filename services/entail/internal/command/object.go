package command

import (
	"fmt"
	"slices"
	"strings"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/entail/internal/exit"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// objectArgument is an argument KIND/NAME or KIND/NAMESPACE/NAME.
type objectArgument struct {
	kind, namespace, name string
}

// parseObjectArgument reads an object. A namespace in the argument wins over the default one.
func parseObjectArgument(argument, namespace string) (objectArgument, error) {
	parts := strings.Split(argument, "/")
	if len(parts) == 3 {
		namespace = parts[1]
	}
	o := objectArgument{kind: parts[0], namespace: namespace, name: parts[len(parts)-1]}
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return objectArgument{}, fmt.Errorf("%w: %q is not KIND/NAME or KIND/NAMESPACE/NAME, such as store/demo", exit.ErrUsage, argument)
	}
	return o, nil
}

// parseIAMObject reads KIND/NAME or KIND/NAMESPACE/NAME of an object of a kind of IAM.
func parseIAMObject(argument string) (*eventv1.ObjectRef, error) {
	kind, name, _ := strings.Cut(argument, "/")
	var names []string
	for _, k := range kinds.IAMKinds() {
		names = append(names, strings.ToLower(k.Kind))
		if !strings.EqualFold(kind, k.Kind) && !strings.EqualFold(kind, k.Resource) {
			continue
		}
		ref := &eventv1.ObjectRef{Group: k.Group, Resource: k.Resource, Name: name}
		if !k.ClusterScoped {
			ref.Namespace, ref.Name, _ = strings.Cut(name, "/")
		}
		if ref.GetName() == "" || strings.Contains(ref.GetName(), "/") || !k.ClusterScoped && ref.GetNamespace() == "" {
			return nil, fmt.Errorf("%w: %q names no %s: use KIND/NAME for cluster-wide kinds, KIND/NAMESPACE/NAME for others",
				exit.ErrUsage, argument, k.Kind)
		}
		return ref, nil
	}
	return nil, fmt.Errorf("%w: %q is of none of %s", exit.ErrUsage, argument, strings.Join(names, ", "))
}
