package opensearchsync

import (
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/verify"
)

// groupTables holds the tables of one OpenSearch kind, one for each API group.
type groupTables []objectTable

// objectsOfCluster returns the objects of all groups that name a cluster, or that are in it by their record.
func (all groupTables) objectsOfCluster(cluster event.Key, uid string) (objects []declaredObject) {
	for _, t := range all {
		objects = append(objects, t.objectsOfCluster(cluster, uid)...)
	}
	return objects
}

// deletedObjectsOf returns the deleted objects that named a cluster.
func (all groupTables) deletedObjectsOf(cluster event.Key) (objects []declaredObject) {
	for _, t := range all {
		objects = append(objects, t.deletedObjectsOf(cluster)...)
	}
	return objects
}

// tableOfGroup returns the table of a group. The caller has found the kind through this group, so a table exists.
func (all groupTables) tableOfGroup(group event.GroupResource) objectTable {
	for _, t := range all {
		if t.kubernetesKind().GroupResource == group {
			return t
		}
	}
	return all[0]
}

func (all groupTables) expectedObject(o declaredObject) verify.ExpectedState {
	return all.tableOfGroup(o.kind.GroupResource).expectedObject(o)
}
