package opensearchsync

import (
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/verify"
)

// tables holds the tables of one OpenSearch kind, one for each API group.
type tables []table

// objectsOf returns the objects of all groups that name a cluster, or that are in it by their record.
func (all tables) objectsOf(cluster event.Key, uid string) (objects []object) {
	for _, t := range all {
		objects = append(objects, t.objectsOf(cluster, uid)...)
	}
	return objects
}

// goneObjects returns the deleted objects that named a cluster.
func (all tables) goneObjects(cluster event.Key) (objects []object) {
	for _, t := range all {
		objects = append(objects, t.goneObjects(cluster)...)
	}
	return objects
}

// tableIn returns the table of a group. The caller has found the kind through this group, so a table exists.
func (all tables) tableIn(group event.GroupResource) table {
	for _, t := range all {
		if t.kindOf().GroupResource == group {
			return t
		}
	}
	return all[0]
}

func (all tables) expectedState(o object) verify.Expected {
	return all.tableIn(o.kind.GroupResource).expectedState(o)
}
