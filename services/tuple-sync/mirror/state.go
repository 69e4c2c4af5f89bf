package mirror

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
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

// Indexes of single kinds.
const (
	// byRole finds bindings by their role.
	byRole = "role"
	// bySubject finds bindings by a subject.
	bySubject = "subject"
	// byTarget and byGrant find bindings by what they are on, and by role and target; byTargetType those on single objects of a type
	// that the watcher follows.
	byTarget     = "target"
	byTargetType = "target type"
	byGrant      = "grant"
	// byGroup and byUser find memberships.
	byGroup = "group"
	byUser  = "user"
	// itself finds roles, groups and accounts by what stands for them in OpenFGA.
	itself = "itself"
	// byType finds ProtectedResources by the type of the objects of their kind.
	byType = "type"
)

// State is what the view says of IAM.
type State struct {
	store  event.Key
	stores *view.Table[corev1alpha1.Store]

	resources     *table[iamv1alpha1.ProtectedResource, *iamv1alpha1.ProtectedResource]
	roles         *table[iamv1alpha1.Role, *iamv1alpha1.Role]
	bindings      *table[iamv1alpha1.PolicyBinding, *iamv1alpha1.PolicyBinding]
	groups        *table[iamv1alpha1.Group, *iamv1alpha1.Group]
	memberships   *table[iamv1alpha1.GroupMembership, *iamv1alpha1.GroupMembership]
	users         *table[iamv1alpha1.User, *iamv1alpha1.User]
	accounts      *table[iamv1alpha1.ServiceAccount, *iamv1alpha1.ServiceAccount]
	organizations *table[resourcemanagerv1alpha1.Organization, *resourcemanagerv1alpha1.Organization]
	projects      *table[resourcemanagerv1alpha1.Project, *resourcemanagerv1alpha1.Project]
	// targets are the objects of all other kinds that are registered, observed which of these kinds are.
	targets  *table[metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata]
	observed *observed
	// kinds are all but the targets.
	kinds map[event.GroupResource]followed
	// types are the same by the types of their objects in OpenFGA.
	types map[string]followed
	// trust lets bindings on objects of kinds that nobody follows act.
	trust bool
	// mayHold says of an object of OpenFGA whether it may hold anything now; nil if nobody knows.
	mayHold func(object string) bool

	// revision counts changes of ProtectedResources, as far as they matter; judged is what they were.
	revision atomic.Uint64
	judged   map[event.Key]string
	registry cache
	// inherited is what the roles give, and who inherits which.
	inherited inherited
	// taken are declared objects that may have taken something away since they were spread.
	taken struct {
		mu   sync.Mutex
		keys map[event.Key]bool
	}
}

// cache keeps what follows from ProtectedResources.
type cache struct {
	mu      sync.Mutex
	of      basis
	objects *iam.Objects
}

// basis is what all tuples depend on.
type basis struct {
	storeID, modelID string
	revision         uint64
	// ends says that the store is to hold nothing any more.
	ends bool
}

// NewState declares the tables in v, for the IAM store of a cluster. Where that is trusted, bindings act whose target nobody
// can look for, because objects of its kind are not followed.
func NewState(v *view.View, stores *view.Table[corev1alpha1.Store], store event.Key, trust bool) *State {
	cluster := store.Cluster
	s := &State{
		judged: map[event.Key]string{}, trust: trust, stores: stores, store: store,
	}
	s.taken.keys = map[event.Key]bool{}
	s.resources = register(v, s, config[iamv1alpha1.ProtectedResource]{
		kind: kinds.ProtectedResources(), cluster: cluster, matters: func(p *iamv1alpha1.ProtectedResource) (_, _ any) { return p.Spec, nil },
		indexes: map[string]func(*iamv1alpha1.ProtectedResource) []string{
			byType: func(p *iamv1alpha1.ProtectedResource) []string {
				return []string{iam.Type(p.Spec.ServiceRef.Name, p.Spec.Kind)}
			},
		},
	})
	s.roles = register(v, s, config[iamv1alpha1.Role]{
		kind: kinds.IAMRoles(), cluster: cluster, matters: func(r *iamv1alpha1.Role) (_, _ any) { return r.Spec, nil },
		indexes: map[string]func(*iamv1alpha1.Role) []string{
			itself: func(r *iamv1alpha1.Role) []string { return []string{iam.RoleObject(r)} },
		},
	})
	s.bindings = register(v, s, config[iamv1alpha1.PolicyBinding]{
		kind: kinds.PolicyBindings(), cluster: cluster, matters: func(b *iamv1alpha1.PolicyBinding) (_, _ any) { return b.Spec, nil },
		indexes: map[string]func(*iamv1alpha1.PolicyBinding) []string{
			byTarget: func(b *iamv1alpha1.PolicyBinding) []string { return []string{iam.TargetOf(b)} },
			byTargetType: func(b *iamv1alpha1.PolicyBinding) []string {
				if typ := iam.TypeOf(iam.TargetOf(b)); b.Spec.ResourceSelector.ResourceRef != nil && s.types[typ] == nil {
					return []string{typ}
				}
				return nil
			},
			byGrant: func(b *iamv1alpha1.PolicyBinding) []string { return []string{iam.GrantIndex(b)} },
			byRole: func(b *iamv1alpha1.PolicyBinding) []string {
				return []string{path(cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name)}
			},
			bySubject: func(b *iamv1alpha1.PolicyBinding) (subjects []string) {
				for _, subject := range b.Spec.Subjects {
					subjects = append(subjects, subjectIndex(subject.Kind, subject.Namespace, subject.Name))
					if isCore(subject) {
						subjects = append(subjects, iam.ServiceAccount(subject.UID))
					}
				}
				return subjects
			},
		},
	})
	s.registerSubjects(v, cluster)
	s.organizations = register(v, s, config[resourcemanagerv1alpha1.Organization]{
		kind: kinds.Organizations(), cluster: cluster, matters: func(*resourcemanagerv1alpha1.Organization) (_, _ any) { return nil, nil },
	})
	s.projects = register(v, s, config[resourcemanagerv1alpha1.Project]{
		kind: kinds.Projects(), cluster: cluster, target: iam.TargetOfProject,
		matters: func(p *resourcemanagerv1alpha1.Project) (_, _ any) { return p.Spec, p.Status.Organization },
	})
	s.kinds = map[event.GroupResource]followed{
		kinds.ProtectedResources().GroupResource: s.resources, kinds.IAMRoles().GroupResource: s.roles,
		kinds.PolicyBindings().GroupResource: s.bindings, kinds.Groups().GroupResource: s.groups,
		kinds.GroupMemberships().GroupResource: s.memberships, kinds.Users().GroupResource: s.users,
		kinds.IAMServiceAccounts().GroupResource: s.accounts, kinds.Organizations().GroupResource: s.organizations,
		kinds.Projects().GroupResource: s.projects,
	}
	s.types = map[string]followed{}
	for _, kind := range kinds.IAM() {
		s.types[iam.Type(kind.Group, kind.Kind)] = s.kinds[kind.GroupResource]
	}
	s.followTargets(v, cluster)
	v.OnLoad(s.loaded)
	v.OnChange(func(k event.Key) {
		if s.kind(k.GroupResource) != nil && k.Cluster == cluster && s.isGone(k) {
			s.mark(k)
		}
		if k.GroupResource == kinds.ProtectedResources().GroupResource && s.rejudged(k) {
			s.revision.Add(1)
		}
	})
	return s
}

// loaded judges all ProtectedResources anew: they may be what they were before, and not what the registry is of. Until now none
// that is loaded was to be seen.
func (s *State) loaded() {
	clear(s.judged)
	for _, k := range s.resources.rows.Keys() {
		s.rejudged(k)
	}
	s.revision.Add(1)
}

// rejudged says whether a ProtectedResource has changed in what registers a kind.
func (s *State) rejudged(k event.Key) bool {
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

// registerSubjects declares who can be granted something.
func (s *State) registerSubjects(v *view.View, cluster string) {
	s.groups = register(v, s, config[iamv1alpha1.Group]{
		kind: kinds.Groups(), cluster: cluster, matters: func(*iamv1alpha1.Group) (_, _ any) { return nil, nil },
		indexes: map[string]func(*iamv1alpha1.Group) []string{
			itself: func(g *iamv1alpha1.Group) []string { return []string{iam.GroupObject(g)} },
		},
	})
	s.memberships = register(v, s, config[iamv1alpha1.GroupMembership]{
		kind: kinds.GroupMemberships(), cluster: cluster,
		matters: func(m *iamv1alpha1.GroupMembership) (_, _ any) { return m.Spec, m.Status.User },
		indexes: map[string]func(*iamv1alpha1.GroupMembership) []string{
			byGroup: func(m *iamv1alpha1.GroupMembership) []string {
				return []string{path(m.Spec.GroupRef.Namespace, m.Spec.GroupRef.Name)}
			},
			byUser: func(m *iamv1alpha1.GroupMembership) []string { return []string{m.Spec.UserRef.Name} },
		},
	})
	s.users = register(v, s, config[iamv1alpha1.User]{
		kind: kinds.Users(), cluster: cluster, matters: func(u *iamv1alpha1.User) (_, _ any) { return u.Status.State, nil },
	})
	s.accounts = register(v, s, config[iamv1alpha1.ServiceAccount]{
		kind: kinds.IAMServiceAccounts(), cluster: cluster, matters: func(a *iamv1alpha1.ServiceAccount) (_, _ any) { return a.Spec, nil },
		indexes: map[string]func(*iamv1alpha1.ServiceAccount) []string{
			itself: func(a *iamv1alpha1.ServiceAccount) []string { return []string{iam.ServiceAccount(string(a.UID))} },
		},
	})
}

// isCore says whether a subject is an account of the core API: its UID alone is compared.
func isCore(s iamv1alpha1.Subject) bool {
	return s.Kind == iamv1alpha1.ServiceAccountKind && s.Namespace != ""
}

func path(namespace, name string) string { return namespace + "/" + name }

// subjectIndex is the same for all that name the same subject. Users and accounts of IAM have no namespace.
func subjectIndex(kind, namespace, name string) string {
	if kind == iamv1alpha1.UserKind {
		namespace = ""
	}
	return kind + "/" + path(namespace, name)
}

// where is the IAM store with its model, as the Store says. One that is to go is kept until it is gone: nothing that was
// taken away is held meanwhile.
func (s *State) where() (o view.Object[corev1alpha1.Store], known bool) {
	o, ok := s.stores.Get(s.store)
	return o, ok && o.Value.Status.StoreID != "" && o.Value.Status.AuthorizationModelID != ""
}

// basis is what tuples depend on now.
func (s *State) basis(o view.Object[corev1alpha1.Store]) basis {
	return basis{o.Value.Status.StoreID, o.Value.Status.AuthorizationModelID, s.revision.Load(), s.ends(o)}
}

// changes is greater whenever what is declared may be something else.
func (s *State) changes() (n uint64) {
	for _, kind := range s.all() {
		n += kind.changes()
	}
	return n + s.observed.revision.Load()
}

// ends says that the IAM store is to go, and no kind is registered any more. Whoever keeps its OpenFGA store is answered by
// its last model: it is emptied first.
func (s *State) ends(store view.Object[corev1alpha1.Store]) bool {
	return store.Value.DeletionTimestamp != nil && !slices.ContainsFunc(s.resources.keys(), func(k event.Key) bool {
		f, live := s.resources.last(k)
		return live && f.alive
	})
}

// objects are all that is declared, by what of it the model knows: a kind without a type there is not registered.
func (s *State) objects(of basis, model *plan.Model) *iam.Objects {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	if s.registry.objects == nil || s.registry.of != of {
		s.registry.of, s.registry.objects = of, s.objectsOf(model)
	}
	if inheritance := s.inheritance(); s.registry.objects.Inheritance != inheritance {
		objects := *s.registry.objects // Others may still go by what roles gave before.
		objects.Inheritance = inheritance
		s.registry.objects = &objects
	}
	return s.registry.objects
}

func (s *State) objectsOf(model *plan.Model) *iam.Objects {
	var all []*iamv1alpha1.ProtectedResource
	for _, o := range s.resources.rows.All() {
		if o.Key.Cluster == s.store.Cluster {
			all = append(all, o.Value)
		}
	}
	return &iam.Objects{
		Registry: iam.RegisterIn(all, model.Has),
		Role:     s.roles.get, Group: s.groups.get,
		User:           func(name string) *iamv1alpha1.User { return s.users.get("", name) },
		ServiceAccount: func(name string) *iamv1alpha1.ServiceAccount { return s.accounts.get("", name) },
		Target: func(object string) (iam.Target, bool) {
			if kind := s.ofType(iam.TypeOf(object)); kind != nil {
				return kind.target(object)
			}
			return iam.Target{}, false
		},
		Trusted: func(typ string) bool { return s.trust && s.ofType(typ) == nil },
		Scope:   s.scope,
		Inactive: func(subject string) bool {
			a := first(s.accounts.values(itself, subject))
			return a != nil && a.Spec.State == iamv1alpha1.Inactive
		},
		RoleOf:     func(object string) *iamv1alpha1.Role { return first(s.roles.values(itself, object)) },
		GroupOf:    func(object string) *iamv1alpha1.Group { return first(s.groups.values(itself, object)) },
		BindingsOn: func(target string) []*iamv1alpha1.PolicyBinding { return s.bindings.values(byTarget, target) },
		BindingsBy: func(index string) []*iamv1alpha1.PolicyBinding { return s.bindings.values(byGrant, index) },
		MembershipsOf: func(ns, name string) []*iamv1alpha1.GroupMembership {
			return s.memberships.values(byGroup, path(ns, name))
		},
	}
}

func first[T any](all []*T) *T {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// at finds what an object of OpenFGA is as a target.
func (s *State) at(object string) (found, bool) {
	if kind := s.ofType(iam.TypeOf(object)); kind != nil {
		return kind.at(object)
	}
	return found{}, false
}

// storeSays states which OpenFGA store and model are the IAM store's, and whether it is taken over with all that is in it.
func storeSays(o view.Object[corev1alpha1.Store]) confirm.Statement {
	return confirm.NewStatement(o, func(s *corev1alpha1.Store) (declared, recorded any) {
		return []any{s.DeletionTimestamp, s.Spec.Adoption}, []any{s.Status.StoreID, s.Status.AuthorizationModelID}
	})
}
