package policy

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// maxOwner is how long the name of a module may be in OpenFGA, which owners become.
const maxOwner = 50

// OwnerOf is who provides the document in a Kubernetes object of the name namespace/name, after
// its cluster if that matters: namespace_name, with _ for each dot too, since no name of an
// object has one; or a hash, where that could not name a module.
func OwnerOf(object string) string {
	owner := strings.NewReplacer("/", "_", ".", "_").Replace(object)
	if strings.Count(object, "/") == 1 && len(owner) <= maxOwner && owner[0] >= 'a' && owner[0] <= 'z' {
		return owner
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(object)) // It cannot fail.
	return fmt.Sprintf("policy-%016x", h.Sum64())
}
