package derived

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

// Indexes of single kinds.
const (
	// byRole finds bindings by their role.
	byRole = "role"
	// bySubject finds bindings by a subject.
	bySubject = "subject"
	// byTarget finds bindings by target, and byGrant by role and target. byTargetType finds bindings on single objects
	// of other kinds, by type.
	byTarget     = "target"
	byTargetType = "target type"
	byGrant      = "grant"
	// byGroup and byUser find memberships.
	byGroup = "group"
	byUser  = "user"
	// itself finds roles, groups and accounts by their OpenFGA object.
	itself = "itself"
	// byType finds ProtectedResources by the OpenFGA type that they register.
	byType = "type"
)

// State holds the declared objects of IAM, from the informer.
type State struct {
	store  event.Key
	stores *informer.Lister[corev1alpha1.Store]

	resources     *table[iamv1alpha1.ProtectedResource, *iamv1alpha1.ProtectedResource]
	roles         *table[iamv1alpha1.Role, *iamv1alpha1.Role]
	bindings      *table[iamv1alpha1.PolicyBinding, *iamv1alpha1.PolicyBinding]
	groups        *table[iamv1alpha1.Group, *iamv1alpha1.Group]
	memberships   *table[iamv1alpha1.GroupMembership, *iamv1alpha1.GroupMembership]
	users         *table[iamv1alpha1.User, *iamv1alpha1.User]
	accounts      *table[iamv1alpha1.ServiceAccount, *iamv1alpha1.ServiceAccount]
	organizations *table[resourcemanagerv1alpha1.Organization, *resourcemanagerv1alpha1.Organization]
	projects      *table[resourcemanagerv1alpha1.Project, *resourcemanagerv1alpha1.Project]
	// targets holds the objects of all other registered kinds. observed holds which of these kinds the watcher follows.
	targets  *table[metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata]
	observed *targetKindObservations
	// kinds holds all tables but targets.
	kinds map[event.GroupResource]objectTable
	// types holds the same tables by OpenFGA type.
	types map[string]objectTable
	// trust lets bindings act on objects of kinds that the watcher does not follow.
	trust bool

	// revision counts relevant changes of ProtectedResources. judged holds their relevant fields at the last change.
	revision atomic.Uint64
	judged   map[event.Key]string
	registry lookupCache
	// inherited caches role permissions and inheritors.
	inherited inheritanceCache
	// taken holds declared objects that may remove tuples and were not spread since.
	taken struct {
		mu   sync.Mutex
		keys map[event.Key]bool
	}
}

// lookupCache keeps the last result of [State.declaredLookup], with its basis.
type lookupCache struct {
	mu      sync.Mutex
	of      inputIdentity
	objects *iam.DeclaredObjects
}

// inputIdentity identifies the inputs that all tuples depend on.
type inputIdentity struct {
	storeID, modelID string
	revision         uint64
	// ends means that the store must become empty.
	ends bool
}

// NewState registers the tables in v, for the IAM store of a cluster. With trust, bindings act on single objects whose
// kind the watcher does not follow.
func NewState(v *informer.Informer, stores *informer.Lister[corev1alpha1.Store], store event.Key, trust bool) *State {
	cluster := store.Cluster
	s := &State{
		judged: map[event.Key]string{}, trust: trust, stores: stores, store: store,
	}
	s.taken.keys = map[event.Key]bool{}
	s.resources = registerTable(v, s, tableConfig[iamv1alpha1.ProtectedResource]{
		kind: kinds.ProtectedResources(), cluster: cluster, matters: func(p *iamv1alpha1.ProtectedResource) (_, _ any) { return p.Spec, nil },
		indexes: map[string]func(*iamv1alpha1.ProtectedResource) []string{
			byType: func(p *iamv1alpha1.ProtectedResource) []string {
				return []string{iam.OpenFGAType(p.Spec.ServiceRef.Name, p.Spec.Kind)}
			},
		},
	})
	s.roles = registerTable(v, s, tableConfig[iamv1alpha1.Role]{
		kind: kinds.IAMRoles(), cluster: cluster, matters: func(r *iamv1alpha1.Role) (_, _ any) { return r.Spec, nil },
		indexes: map[string]func(*iamv1alpha1.Role) []string{
			itself: func(r *iamv1alpha1.Role) []string { return []string{iam.RoleObject(r)} },
		},
	})
	s.bindings = registerTable(v, s, tableConfig[iamv1alpha1.PolicyBinding]{
		kind: kinds.PolicyBindings(), cluster: cluster, matters: func(b *iamv1alpha1.PolicyBinding) (_, _ any) { return b.Spec, nil },
		indexes: map[string]func(*iamv1alpha1.PolicyBinding) []string{
			byTarget: func(b *iamv1alpha1.PolicyBinding) []string { return []string{iam.TargetOfBinding(b)} },
			byTargetType: func(b *iamv1alpha1.PolicyBinding) []string {
				if typ := iam.TypeOfObject(iam.TargetOfBinding(b)); b.Spec.ResourceSelector.ResourceRef != nil && s.types[typ] == nil {
					return []string{typ}
				}
				return nil
			},
			byGrant: func(b *iamv1alpha1.PolicyBinding) []string { return []string{iam.RoleTargetIndexKey(b)} },
			byRole: func(b *iamv1alpha1.PolicyBinding) []string {
				return []string{namespacedPath(cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name)}
			},
			bySubject: func(b *iamv1alpha1.PolicyBinding) (subjects []string) {
				for _, subject := range b.Spec.Subjects {
					subjects = append(subjects, subjectIndexKey(subject.Kind, subject.Namespace, subject.Name))
					if isCoreServiceAccount(subject) {
						subjects = append(subjects, iam.ServiceAccountSubject(subject.UID))
					}
				}
				return subjects
			},
		},
	})
	s.registerSubjectTables(v, cluster)
	s.organizations = registerTable(v, s, tableConfig[resourcemanagerv1alpha1.Organization]{
		kind: kinds.Organizations(), cluster: cluster, matters: func(*resourcemanagerv1alpha1.Organization) (_, _ any) { return nil, nil },
	})
	s.projects = registerTable(v, s, tableConfig[resourcemanagerv1alpha1.Project]{
		kind: kinds.Projects(), cluster: cluster, target: iam.TargetOfProject,
		matters: func(p *resourcemanagerv1alpha1.Project) (_, _ any) { return p.Spec, p.Status.Organization },
	})
	s.kinds = map[event.GroupResource]objectTable{
		kinds.ProtectedResources().GroupResource: s.resources, kinds.IAMRoles().GroupResource: s.roles,
		kinds.PolicyBindings().GroupResource: s.bindings, kinds.IAMGroups().GroupResource: s.groups,
		kinds.GroupMemberships().GroupResource: s.memberships, kinds.IAMUsers().GroupResource: s.users,
		kinds.IAMServiceAccounts().GroupResource: s.accounts, kinds.Organizations().GroupResource: s.organizations,
		kinds.Projects().GroupResource: s.projects,
	}
	s.types = map[string]objectTable{}
	for _, kind := range kinds.IAMKinds() {
		s.types[iam.OpenFGAType(kind.Group, kind.Kind)] = s.kinds[kind.GroupResource]
	}
	s.registerTargets(v, cluster)
	v.OnLoaded(s.recomputeRegistrations)
	v.OnChange(func(k event.Key) {
		if s.tableOf(k.GroupResource) != nil && k.Cluster == cluster && s.isDeleted(k) {
			s.markRevoking(k)
		}
		if k.GroupResource == kinds.ProtectedResources().GroupResource && s.updateRegistration(k) {
			s.revision.Add(1)
		}
	})
	return s
}

// recomputeRegistrations computes judged again after a load of the informer, and always raises revision. The registry
// may be of content that the load replaced.
func (s *State) recomputeRegistrations() {
	clear(s.judged)
	for _, k := range s.resources.rows.Keys() {
		s.updateRegistration(k)
	}
	s.revision.Add(1)
}

// updateRegistration updates judged for k, and reports whether a field changed that registration depends on.
func (s *State) updateRegistration(k event.Key) bool {
	is := ""
	if o, ok := s.resources.rows.Get(k); ok {
		is = fmt.Sprint(o.UID, o.Generation, o.Value.DeletionTimestamp)
		if record := o.Value.Status.Registered; record != nil {
			is += fmt.Sprint(*record)
		}
		if registered := meta.FindStatusCondition(o.Value.Status.Conditions, iamv1alpha1.Registered); registered != nil {
			is += fmt.Sprint(registered.Status, registered.Reason)
		}
	}
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	was := s.judged[k]
	s.judged[k] = is
	return is != was
}

// registerSubjectTables registers the kinds of subjects, and memberships.
func (s *State) registerSubjectTables(v *informer.Informer, cluster string) {
	s.groups = registerTable(v, s, tableConfig[iamv1alpha1.Group]{
		kind: kinds.IAMGroups(), cluster: cluster, matters: func(*iamv1alpha1.Group) (_, _ any) { return nil, nil },
		indexes: map[string]func(*iamv1alpha1.Group) []string{
			itself: func(g *iamv1alpha1.Group) []string { return []string{iam.GroupObject(g)} },
		},
	})
	s.memberships = registerTable(v, s, tableConfig[iamv1alpha1.GroupMembership]{
		kind: kinds.GroupMemberships(), cluster: cluster,
		matters: func(m *iamv1alpha1.GroupMembership) (_, _ any) { return m.Spec, m.Status.User },
		indexes: map[string]func(*iamv1alpha1.GroupMembership) []string{
			byGroup: func(m *iamv1alpha1.GroupMembership) []string {
				return []string{namespacedPath(m.Spec.GroupRef.Namespace, m.Spec.GroupRef.Name)}
			},
			byUser: func(m *iamv1alpha1.GroupMembership) []string { return []string{m.Spec.UserRef.Name} },
		},
	})
	s.users = registerTable(v, s, tableConfig[iamv1alpha1.User]{
		kind: kinds.IAMUsers(), cluster: cluster, matters: func(u *iamv1alpha1.User) (_, _ any) { return u.Status.State, nil },
	})
	s.accounts = registerTable(v, s, tableConfig[iamv1alpha1.ServiceAccount]{
		kind: kinds.IAMServiceAccounts(), cluster: cluster, matters: func(a *iamv1alpha1.ServiceAccount) (_, _ any) { return a.Spec, nil },
		indexes: map[string]func(*iamv1alpha1.ServiceAccount) []string{
			itself: func(a *iamv1alpha1.ServiceAccount) []string {
				return []string{iam.ServiceAccountSubject(string(a.UID))}
			},
		},
	})
}

// isCoreServiceAccount reports whether a subject is a ServiceAccount of the core API. Only its UID is compared.
func isCoreServiceAccount(s iamv1alpha1.Subject) bool {
	return s.Kind == iamv1alpha1.ServiceAccountKind && s.Namespace != ""
}

func namespacedPath(namespace, name string) string { return namespace + "/" + name }

// subjectIndexKey returns one value for all references to the same subject. It ignores the namespace of users.
func subjectIndexKey(kind, namespace, name string) string {
	if kind == iamv1alpha1.UserKind {
		namespace = ""
	}
	return kind + "/" + namespacedPath(namespace, name)
}

// iamStore returns the Store of IAM, if its status names a store and a model. A Store in deletion counts until it is gone,
// so that removals still reach its OpenFGA store.
func (s *State) iamStore() (o informer.Object[corev1alpha1.Store], known bool) {
	o, ok := s.stores.Get(s.store)
	return o, ok && o.Value.Status.StoreID != "" && o.Value.Status.AuthorizationModelID != ""
}

func (s *State) currentInputIdentity(o informer.Object[corev1alpha1.Store]) inputIdentity {
	return inputIdentity{o.Value.Status.StoreID, o.Value.Status.AuthorizationModelID, s.revision.Load(), s.isStoreDeletable(o)}
}

// changeCount returns a number that grows whenever the declared objects may have changed.
func (s *State) changeCount() (n uint64) {
	for _, kind := range s.allTables() {
		n += kind.changeCount()
	}
	return n + s.observed.revision.Load()
}

// isStoreDeletable reports whether the Store is being deleted and no ProtectedResource is alive. The OpenFGA store is emptied
// first, because clients could otherwise still query it.
func (s *State) isStoreDeletable(store informer.Object[corev1alpha1.Store]) bool {
	return store.Value.DeletionTimestamp != nil && !slices.ContainsFunc(s.resources.liveKeys(), func(k event.Key) bool {
		f, live := s.resources.liveOrDeleted(k)
		return live && f.alive
	})
}

// declaredLookup returns the declared objects under a model. A kind whose type the model lacks does not count as registered.
func (s *State) declaredLookup(of inputIdentity, model *plan.Model) *iam.DeclaredObjects {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	if s.registry.objects == nil || s.registry.of != of {
		s.registry.of, s.registry.objects = of, s.newLookup(model.HasType)
	}
	if inheritance := s.currentInheritance(); s.registry.objects.Inheritance != inheritance {
		objects := *s.registry.objects // Earlier callers may still use the old permissions.
		objects.Inheritance = inheritance
		s.registry.objects = &objects
	}
	return s.registry.objects
}

// newLookup returns the declared objects. Only kinds whose type hasType accepts count as registered.
func (s *State) newLookup(hasType func(typ string) bool) *iam.DeclaredObjects {
	var all []*iamv1alpha1.ProtectedResource
	for _, o := range s.resources.rows.All() {
		if o.Key.Cluster == s.store.Cluster {
			all = append(all, o.Value)
		}
	}
	return &iam.DeclaredObjects{
		Registry: iam.NewRegistryForTypes(all, hasType),
		Role:     s.roles.getLive, Group: s.groups.getLive,
		User:           func(name string) *iamv1alpha1.User { return s.users.getLive("", name) },
		ServiceAccount: func(name string) *iamv1alpha1.ServiceAccount { return s.accounts.getLive("", name) },
		Target: func(object string) (iam.BindingTarget, bool) {
			if kind := s.tableOfType(iam.TypeOfObject(object)); kind != nil {
				return kind.bindingTargetOf(object)
			}
			return iam.BindingTarget{}, false
		},
		Trusted: func(typ string) bool { return s.trust && s.tableOfType(typ) == nil },
		Scope:   s.typeScope,
		Inactive: func(subject string) bool {
			a := firstOrNil(s.accounts.liveValuesBy(itself, subject))
			return a != nil && a.Spec.State == iamv1alpha1.Inactive
		},
		RoleOf:     func(object string) *iamv1alpha1.Role { return firstOrNil(s.roles.liveValuesBy(itself, object)) },
		GroupOf:    func(object string) *iamv1alpha1.Group { return firstOrNil(s.groups.liveValuesBy(itself, object)) },
		BindingsOn: func(target string) []*iamv1alpha1.PolicyBinding { return s.bindings.liveValuesBy(byTarget, target) },
		BindingsBy: func(index string) []*iamv1alpha1.PolicyBinding { return s.bindings.liveValuesBy(byGrant, index) },
		MembershipsOf: func(ns, name string) []*iamv1alpha1.GroupMembership {
			return s.memberships.liveValuesBy(byGroup, namespacedPath(ns, name))
		},
	}
}

func firstOrNil[T any](all []*T) *T {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// expectedStore returns the expected state of the Store: its deletion, its adoption, its OpenFGA store and its model.
func expectedStore(o informer.Object[corev1alpha1.Store]) verify.ExpectedState {
	return verify.NewExpectedState(o, func(s *corev1alpha1.Store) (declared, recorded any) {
		return []any{s.DeletionTimestamp, s.Spec.Adoption}, []any{s.Status.StoreID, s.Status.AuthorizationModelID}
	})
}
