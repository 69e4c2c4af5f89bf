package opensearchsync

import (
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
)

// tables are those of one kind of thing in OpenSearch: one for each group that objects ask for it in.
type tables []table

// of are the objects of all groups that say they are in a cluster, or are by their record.
func (all tables) of(cluster event.Key, uid string) (objects []object) {
	for _, t := range all {
		objects = append(objects, t.of(cluster, uid)...)
	}
	return objects
}

// gone are those that were, and have been deleted since.
func (all tables) gone(cluster event.Key) (objects []object) {
	for _, t := range all {
		objects = append(objects, t.gone(cluster)...)
	}
	return objects
}

// in is the table of a group. There is one for whatever has led to the kind.
func (all tables) in(group event.GroupResource) table {
	for _, t := range all {
		if t.is().GroupResource == group {
			return t
		}
	}
	return all[0]
}

func (all tables) stated(o object) (confirm.Statement, bool) {
	return all.in(o.kind.GroupResource).stated(o)
}
