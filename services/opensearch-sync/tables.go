package opensearchsync

import (
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/verify"
)

// tables holds the tables of one OpenSearch kind, one for each API group.
type tables []table

// of returns the objects of all groups that name a cluster, or that are in it by their record.
func (all tables) of(cluster event.Key, uid string) (objects []object) {
	for _, t := range all {
		objects = append(objects, t.of(cluster, uid)...)
	}
	return objects
}

// gone returns the deleted objects that named a cluster.
func (all tables) gone(cluster event.Key) (objects []object) {
	for _, t := range all {
		objects = append(objects, t.gone(cluster)...)
	}
	return objects
}

// in returns the table of a group. The caller has found the kind through this group, so a table exists.
func (all tables) in(group event.GroupResource) table {
	for _, t := range all {
		if t.is().GroupResource == group {
			return t
		}
	}
	return all[0]
}

func (all tables) expected(o object) verify.Expected {
	return all.in(o.kind.GroupResource).expected(o)
}
