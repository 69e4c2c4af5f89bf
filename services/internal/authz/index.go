package authz

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// Ref names an object of a kind. The namespace is empty for a cluster-scoped kind.
type Ref struct{ Namespace, Name string }

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Index holds the declared objects that decide access. Create one with [New]. It is safe for concurrent use. Each Set
// method takes the name of an object and the object, or nil for a deleted object. An object in deletion counts as
// deleted.
type Index struct {
	mu      sync.RWMutex
	trusted func(typ string) bool
	// loading is set while [Index.BulkLoad] runs. No query is decided during that time.
	loading bool

	resources map[string]*iamv1alpha1.ProtectedResource
	registry  *iam.Registry
	kinds     map[string]*registeredKind
	// permissions maps each permission to its position in names. It changes only with the registry.
	permissions map[string]int
	names       []string
	// owners holds, for each permission in names, the type that registers it.
	owners []string

	roles map[Ref]*role

	users        map[string]accountState
	accounts     map[string]accountState
	accountNames map[string]string // account names by UID
	groups       map[Ref]string    // group UIDs by name
	memberships  map[Ref]membership
	// membershipsOf holds the memberships of each user, membershipsIn those of each group.
	membershipsOf multimap[string, Ref]
	membershipsIn multimap[Ref, Ref]
	// belongings counts the memberships of a user in a group that are valid for the user's UID.
	belongings map[membershipKey]int

	// observed holds the types whose objects are all in the index.
	observed   map[string]bool
	places     map[Scope]*scopeEntry
	bindings   map[Ref]*binding
	principals map[Principal]*principal
}

// New returns an empty index, which allows nothing. trusted reports whether bindings on objects of a type take effect
// although the index does not hold these objects. trusted may be nil.
func New(trusted func(typ string) bool) *Index {
	return &Index{
		trusted:   trusted,
		resources: map[string]*iamv1alpha1.ProtectedResource{}, registry: iam.NewRegistry(nil),
		roles: map[Ref]*role{},
		users: map[string]accountState{}, accounts: map[string]accountState{}, accountNames: map[string]string{}, groups: map[Ref]string{},
		memberships: map[Ref]membership{}, membershipsOf: multimap[string, Ref]{}, membershipsIn: multimap[Ref, Ref]{}, belongings: map[membershipKey]int{},
		observed: map[string]bool{}, places: map[Scope]*scopeEntry{}, bindings: map[Ref]*binding{}, principals: map[Principal]*principal{},
	}
}

// BulkLoad calls tell, which sets many objects before the first query. The permissions of roles are computed once,
// after tell has returned.
func (x *Index) BulkLoad(load func()) {
	x.loading = true
	load()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.loading = false
	x.rebuildRegistry()
}

// isAlive reports whether an object exists and is not in deletion.
func isAlive[T any, P interface {
	*T
	metav1.Object
}](o P) bool {
	return o != nil && o.GetDeletionTimestamp() == nil
}

// multimap maps each key to several values.
type multimap[K, V comparable] map[K]map[V]struct{}

func (m multimap[K, V]) addValue(k K, v V) {
	if m[k] == nil {
		m[k] = map[V]struct{}{}
	}
	m[k][v] = struct{}{}
}

func (m multimap[K, V]) removeValue(k K, v V) {
	delete(m[k], v)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}
