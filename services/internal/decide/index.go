package decide

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// Ref names an object of a kind. The namespace is empty if the kind has none.
type Ref struct{ Namespace, Name string }

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Index holds what the declared objects say. Make one with [New]; it serves several at a time.
// Objects are set under their names, nil when they are gone; those in deletion are gone, too.
type Index struct {
	mu      sync.RWMutex
	trusted func(typ string) bool
	// loading says that nobody asks yet.
	loading bool

	resources map[string]*iamv1alpha1.ProtectedResource
	registry  *iam.Registry
	kinds     map[string]*kind
	// permissions are numbered by their places in names, as long as the registry stays as it is.
	permissions map[string]int
	names       []string
	// owners are the types whose kinds register them.
	owners []string

	roles map[Ref]*role

	users        map[string]account
	accounts     map[string]account
	accountNames map[string]string // By UID.
	groups       map[Ref]string    // UIDs.
	memberships  map[Ref]membership
	// membershipsOf are those of a user, membershipsIn those in a group.
	membershipsOf multimap[string, Ref]
	membershipsIn multimap[Ref, Ref]
	// belongings are how many memberships are recorded for a user and a group.
	belongings map[belonging]int

	// observed are the types of which it is known which objects there are.
	observed   map[string]bool
	places     map[Place]*place
	bindings   map[Ref]*binding
	principals map[Principal]*principal
}

// New makes an index in which nobody may do anything. Objects of trusted types nobody follows: bindings on
// them act whether or not they are there. The function may be nil if there are none.
func New(trusted func(typ string) bool) *Index {
	return &Index{
		trusted:   trusted,
		resources: map[string]*iamv1alpha1.ProtectedResource{}, registry: iam.Register(nil),
		roles: map[Ref]*role{},
		users: map[string]account{}, accounts: map[string]account{}, accountNames: map[string]string{}, groups: map[Ref]string{},
		memberships: map[Ref]membership{}, membershipsOf: multimap[string, Ref]{}, membershipsIn: multimap[Ref, Ref]{}, belongings: map[belonging]int{},
		observed: map[string]bool{}, places: map[Place]*place{}, bindings: map[Ref]*binding{}, principals: map[Principal]*principal{},
	}
}

// Load has a function tell it very much, while nobody asks: what roles inherit is worked out once, at the end.
func (x *Index) Load(tell func()) {
	x.loading = true
	tell()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.loading = false
	x.register()
}

// alive says whether there is an object that is not in deletion.
func alive[T any, P interface {
	*T
	metav1.Object
}](o P) bool {
	return o != nil && o.GetDeletionTimestamp() == nil
}

// multimap leads from each key to several values.
type multimap[K, V comparable] map[K]map[V]struct{}

func (m multimap[K, V]) add(k K, v V) {
	if m[k] == nil {
		m[k] = map[V]struct{}{}
	}
	m[k][v] = struct{}{}
}

func (m multimap[K, V]) remove(k K, v V) {
	delete(m[k], v)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}
