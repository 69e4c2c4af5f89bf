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

// Monitor queries OpenFGA, the API server and webhooks at all times, at rest or not. Access that no state has declared
// since the last rest must never exist, not even for a moment. A missing answer counts as no observation.
type Monitor struct {
	fga    *OpenFGA
	kube   *kubernetes.Clientset
	report func(error)
	// webhooks returns the URLs of the running webhooks.
	webhooks func() []string
	access   []question

	mu       sync.Mutex
	possible *possible
	// epoch counts the rests. Before the first one, nothing can be judged.
	epoch int
	// looks counts answers. A monitor without answers has observed nothing.
	looks int
}

// NewMonitor returns a monitor that calls report for each violation.
func NewMonitor(fga *OpenFGA, kube *rest.Config, webhooks func() []string, report func(error)) (*Monitor, error) {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("connecting the monitor: %w", err)
	}
	return &Monitor{fga: fga, kube: client, report: report, webhooks: webhooks, access: allQuestions(), possible: newPossible()}, nil
}

// Rest tells the monitor that the system is at rest with these objects.
func (m *Monitor) Rest(s *Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	before := m.possible
	m.possible = newPossible()
	for _, store := range s.All(workload.Stores()) {
		if store.GetDeletionTimestamp() != nil { // Its model stays unchanged, whatever its spec is.
			m.possible.keep(before, store.GetName())
		}
	}
	for kind, objects := range s.byKind {
		for _, o := range objects {
			m.possible.add(kind.Resource, o)
		}
	}
}

// Before tells the monitor that an operation is about to begin. From now on, its effects are possible.
func (m *Monitor) Before(o workload.Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.Verb != workload.Delete {
		m.possible.add(o.Resource.Resource, *o.Object)
	}
}

// TakeLooks returns the number of stores read and questions answered since the last call.
func (m *Monitor) TakeLooks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.looks
	m.looks = 0
	return n
}

// Run makes passes until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if m.current() > 0 {
			m.checkOpenFGA(ctx)
			m.askKubernetes(ctx)
			m.askWebhooks(ctx)
		}
		wait(ctx, every)
	}
}

func (m *Monitor) current() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch
}

// isForbidden reports whether access must not exist, and returns the epoch for which that holds.
func (m *Monitor) isForbidden(allowed func(*possible) bool) (epoch int, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch, !allowed(m.possible)
}

func (m *Monitor) countLooks(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks += n
}

// accusef reports an answer of yes, unless it has become possible since the question, or a rest came between.
func (m *Monitor) accusef(epoch int, allowed func(*possible) bool, format string, args ...any) {
	if now, still := m.isForbidden(allowed); still && now == epoch {
		m.report(Violation{Allow, fmt.Errorf(format, args...)})
	}
}

func (m *Monitor) checkOpenFGA(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, oneRound)
	defer cancel()
	stores, err := m.fga.Stores(ctx)
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

func (m *Monitor) readTuples(ctx context.Context, store, id string) {
	epoch := m.current()
	found, err := m.fga.Tuples(ctx, id)
	if err != nil {
		return
	}
	surplus := map[string]bool{}
	m.mu.Lock()
	for _, t := range found {
		if !m.possible.declared(store, t) && m.epoch == epoch {
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

func (m *Monitor) askOpenFGA(ctx context.Context, store, id string) {
	epoch := m.current()
	var ask []Tuple
	for range questions {
		q := Tuple{pick(workload.Objects()), pick(workload.Relations()), pick(workload.Users())}
		if _, is := m.isForbidden(func(p *possible) bool { return p.allows(store, q) }); is {
			ask = append(ask, q)
		}
	}
	yes, err := m.fga.Check(ctx, id, ask)
	if err != nil {
		return
	}
	m.countLooks(len(ask))
	for _, q := range yes {
		m.accusef(epoch, func(p *possible) bool { return p.allows(store, q) },
			"OpenFGA store %s (%s) answers yes to %s, which was revoked and settled", store, id, q)
	}
}

func (m *Monitor) askKubernetes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, oneRound)
	defer cancel()
	for range reviews {
		namespace, person, role := pick(workload.Namespaces()), pick(workload.People()), pick(workload.Roles())
		allowed := func(p *possible) bool { return p.holds(namespace, person, role) }
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
		if m.countLooks(1); answer.Status.Allowed {
			m.accusef(epoch, allowed, "the API server lets %s do what %s permits in %s, which was revoked and settled", person, role, namespace)
		}
	}
}

// askWebhooks sends access questions to each webhook.
func (m *Monitor) askWebhooks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, oneRound)
	defer cancel()
	for _, url := range m.webhooks() {
		for range requests {
			q := pick(m.access)
			allowed := func(p *possible) bool { return p.access.allows(q) }
			epoch, is := m.isForbidden(allowed)
			if !is {
				continue
			}
			yes, err := ask(ctx, url, q)
			if err != nil {
				continue
			}
			if m.countLooks(1); yes {
				m.accusef(epoch, allowed, "the webhook at %s answers yes to %s, which was revoked and settled", url, q)
			}
		}
	}
}

// pick is not seeded: questions do not affect the system.
func pick[T any](from []T) T { return from[rand.IntN(len(from))] }
