package checker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/workload"
)

const (
	// every is the pause between two passes of the monitor.
	every = 250 * time.Millisecond
	// Numbers of questions in one pass: for each store, for the API server, and for each webhook.
	questions, reviews, requests = 25, 6, 12
	oneRound                     = 3 * time.Second
)

// AccessMonitor queries OpenFGA, the API server and webhooks at all times, at rest or not. Access that no state has declared
// since the last rest must never exist, not even for a moment. A missing answer counts as no observation.
type AccessMonitor struct {
	fga    *OpenFGAClient
	kube   *kubernetes.Clientset
	report func(error)
	// webhooks returns the URLs of the running webhooks.
	webhooks func() []string
	access   []accessQuestion

	mu       sync.Mutex
	possible *allowedSince
	// epoch counts the rests. Before the first one, nothing can be judged.
	epoch int
	// looks counts answers. A monitor without answers has observed nothing.
	looks int
}

// NewAccessMonitor returns a monitor that calls report for each violation.
func NewAccessMonitor(fga *OpenFGAClient, kube *rest.Config, webhooks func() []string, report func(error)) (*AccessMonitor, error) {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("connecting the monitor: %w", err)
	}
	return &AccessMonitor{fga: fga, kube: client, report: report, webhooks: webhooks, access: allQuestions(), possible: newAllowedSince()}, nil
}

// NoteQuiescence tells the monitor that the system is at rest with these objects.
func (m *AccessMonitor) NoteQuiescence(s *ObjectSnapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	before := m.possible
	m.possible = newAllowedSince()
	for _, store := range s.ObjectsOfKind(workload.StoreResource()) {
		if store.GetDeletionTimestamp() != nil { // Its model stays unchanged, whatever its spec is.
			m.possible.copyStoreFrom(before, store.GetName())
		}
	}
	for kind, objects := range s.byKind {
		for _, o := range objects {
			m.possible.addState(kind.Resource, o)
		}
	}
}

// BeforeOperation tells the monitor that an operation is about to begin. From now on, its effects are possible.
func (m *AccessMonitor) BeforeOperation(o workload.Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.Verb != workload.Delete {
		m.possible.addState(o.Resource.Resource, *o.Object)
	}
}

// TakeCheckCount returns the number of stores read and questions answered since the last call.
func (m *AccessMonitor) TakeCheckCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.looks
	m.looks = 0
	return n
}

// Run makes passes until ctx ends.
func (m *AccessMonitor) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if m.currentEpoch() > 0 {
			m.checkOpenFGA(ctx)
			m.askKubernetes(ctx)
			m.askWebhooks(ctx)
		}
		sleepContext(ctx, every)
	}
}

func (m *AccessMonitor) currentEpoch() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch
}

// isForbidden reports whether access must not exist, and returns the epoch for which that holds.
func (m *AccessMonitor) isForbidden(allowed func(*allowedSince) bool) (epoch int, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch, !allowed(m.possible)
}

func (m *AccessMonitor) countChecks(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks += n
}

// reportf reports an answer of yes, unless it has become possible since the question, or a rest came between.
func (m *AccessMonitor) reportf(epoch int, allowed func(*allowedSince) bool, format string, args ...any) {
	if now, still := m.isForbidden(allowed); still && now == epoch {
		m.report(Violation{Allow, fmt.Errorf(format, args...)})
	}
}

func (m *AccessMonitor) checkOpenFGA(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, oneRound)
	defer cancel()
	stores, err := m.fga.StoreIDs(ctx)
	if err != nil {
		return
	}
	for _, id := range stores[workload.IAMStore] {
		m.readTuples(ctx, workload.IAMStore, id) // This also finds users without any grant.
	}
	for _, store := range workload.StoreNames() {
		for _, id := range stores[store] {
			m.readTuples(ctx, store, id)
			m.askOpenFGA(ctx, store, id)
		}
	}
}

func (m *AccessMonitor) readTuples(ctx context.Context, store, id string) {
	epoch := m.currentEpoch()
	found, err := m.fga.ReadTuples(ctx, id)
	if err != nil {
		return
	}
	surplus := map[string]bool{}
	m.mu.Lock()
	for _, t := range found {
		if !m.possible.isDeclared(store, t) && m.epoch == epoch {
			surplus[t.String()] = true
		}
	}
	m.looks++
	m.mu.Unlock()
	if len(surplus) > 0 {
		surplusErr := compareMaps("tuples", surplus, map[string]bool{})
		m.report(Violation{Leak, fmt.Errorf("OpenFGA store %s (%s) holds what was revoked and settled: %w", store, id, surplusErr)})
	}
}

func (m *AccessMonitor) askOpenFGA(ctx context.Context, store, id string) {
	epoch := m.currentEpoch()
	var ask []Tuple
	for range questions {
		q := Tuple{pickRandom(workload.QuestionObjects()), pickRandom(workload.QuestionRelations()), pickRandom(workload.QuestionUsers())}
		if _, is := m.isForbidden(func(p *allowedSince) bool { return p.mayAllow(store, q) }); is {
			ask = append(ask, q)
		}
	}
	yes, err := m.fga.CheckAllowed(ctx, id, ask)
	if err != nil {
		return
	}
	m.countChecks(len(ask))
	for _, q := range yes {
		m.reportf(epoch, func(p *allowedSince) bool { return p.mayAllow(store, q) },
			"OpenFGA store %s (%s) answers yes to %s, which was revoked and settled", store, id, q)
	}
}

func (m *AccessMonitor) askKubernetes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, oneRound)
	defer cancel()
	for range reviews {
		namespace, person, role := pickRandom(workload.NamespaceNames()), pickRandom(workload.PersonNames()), pickRandom(workload.RoleNames())
		allowed := func(p *allowedSince) bool { return p.mayHoldRole(namespace, person, role) }
		epoch, is := m.isForbidden(allowed)
		if !is {
			continue
		}
		answer, err := m.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: person, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: "get", Resource: "configmaps", Name: role,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			continue
		}
		if m.countChecks(1); answer.Status.Allowed {
			m.reportf(epoch, allowed, "the API server lets %s do what %s permits in %s, which was revoked and settled", person, role, namespace)
		}
	}
}

// askWebhooks sends access questions to each webhook.
func (m *AccessMonitor) askWebhooks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, oneRound)
	defer cancel()
	for _, url := range m.webhooks() {
		for range requests {
			q := pickRandom(m.access)
			allowed := func(p *allowedSince) bool { return p.access.mayAllow(q) }
			epoch, is := m.isForbidden(allowed)
			if !is {
				continue
			}
			yes, err := askCheckAccess(ctx, url, q)
			if err != nil {
				continue
			}
			if m.countChecks(1); yes {
				m.reportf(epoch, allowed, "the webhook at %s answers yes to %s, which was revoked and settled", url, q)
			}
		}
	}
}

// pickRandom is not seeded: questions do not affect the system.
func pickRandom[T any](from []T) T { return from[rand.IntN(len(from))] }
