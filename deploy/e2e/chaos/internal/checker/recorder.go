package checker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
)

const (
	// announced is how old the state behind an answer may be: --max-staleness of webhook, and what docs/authorization.md
	// adds for a watcher that is cut off from the API server.
	announced = 15*time.Second + 3*time.Second
	// markEvery bounds how exactly the time of a change is known.
	markEvery = 100 * time.Millisecond
	// askEvery is the pause after an answer of one server. All but one of hotShare questions go to the hot ones, so each
	// of these is asked more often than every 50 ms.
	askEvery, hotShare, hotQuestions = 8 * time.Millisecond, 4, 3
	// heatEvery is the time after which other questions become hot.
	heatEvery = 5 * time.Second
	// maxPending bounds the answers that wait to be judged, about 80 bytes each. Nothing is asked above it.
	maxPending = 1 << 18
	// kept is how long changes are kept after they were needed, to describe a wrong answer.
	kept = 2 * time.Minute
	// caughtUpWithin bounds the wait for the watches of the recorder.
	caughtUpWithin = 30 * time.Second
	// maxWrong bounds the reports of one judgement.
	maxWrong = 5
)

// Source is one way to ask the webhooks.
type Source struct {
	name string
	// urls returns the addresses of the running replicas.
	urls func() []string
	ask  func(ctx context.Context, url string, q question) (allowed bool, err error)
}

// Sources returns both ways to ask: CheckAccess, and the SubjectAccessReviews of the API server.
func Sources(webhooks, authorizers func() []string) []Source {
	return []Source{{"CheckAccess", webhooks, ask}, {"SubjectAccessReview", authorizers, review}}
}

// Recorder asks webhooks at a high rate, and judges each answer of yes by what the API server held meanwhile. It follows
// the objects by watches of its own. Subjects that lost their access are asked about most.
type Recorder struct {
	objects   dynamic.Interface
	sources   []Source
	report    func(error)
	questions []question
	asked     []history.Question

	mu       sync.Mutex
	timeline history.Timeline
	// marked is the start of the last mark.
	marked time.Time
	// latest holds the newest revision of each object that a watch delivered, and whether the object exists.
	latest  map[history.Key]uint64
	there   map[history.Key]bool
	pending []history.Answer
	// settled is the time from which no older state may count.
	settled time.Time
	// once holds the questions that were allowed at some time, hot those that are asked most.
	once   map[int]bool
	hot    []int
	counts Counts
}

// Counts counts the answers of the servers since the last call of [Recorder.TakeCounts].
type Counts struct {
	// Answers counts all answers, Allows those of yes, Mixed those of yes that no single state explains.
	Answers, Allows, Mixed int
	// Pending is the largest number of answers that waited to be judged.
	Pending int
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	c.Answers, c.Allows, c.Mixed, c.Pending = c.Answers+other.Answers, c.Allows+other.Allows, c.Mixed+other.Mixed, max(c.Pending, other.Pending)
}

// NewRecorder returns a recorder that calls report for each violation.
func NewRecorder(objects dynamic.Interface, sources []Source, report func(error)) *Recorder {
	r := &Recorder{
		objects: objects, sources: sources, report: report, questions: allQuestions(),
		latest: map[history.Key]uint64{}, there: map[history.Key]bool{}, once: map[int]bool{},
	}
	r.asked = historyQuestions(r.questions)
	return r
}

func historyQuestions(all []question) (asked []history.Question) {
	for _, q := range all {
		asked = append(asked, history.Question{
			User: q.Subject.User, Groups: q.Subject.Groups, Permission: permissionOf(q),
			On: history.Key{Type: q.target.Type(), Namespace: q.Resource.Namespace, Name: q.Resource.Name},
		})
	}
	return asked
}

// Run follows the objects and asks until ctx ends. replicas is the number of replicas of each source.
func (r *Recorder) Run(ctx context.Context, replicas int) {
	var all sync.WaitGroup
	for gvr, typ := range accessKinds() {
		all.Go(func() { r.follow(ctx, gvr, typ) })
	}
	all.Go(func() { r.mark(ctx) })
	all.Go(func() { r.heat(ctx) })
	for _, s := range r.sources {
		for i := range replicas {
			all.Go(func() { r.ask(ctx, s, i) })
		}
	}
	all.Wait()
}

// Wrote records an object that the API server returned for a write. A watch that was interrupted may miss it.
func (r *Recorder) Wrote(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	if typ, ok := accessKinds()[gvr]; ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.declare(typ, *o, false)
	}
}

// declare records a state of an object. The caller holds the lock.
func (r *Recorder) declare(typ string, o unstructured.Unstructured, gone bool) history.Key {
	k, revision, content := keyOf(typ, o.GetNamespace()+"/"+o.GetName()), revisionOf(o.GetResourceVersion()), declaredObject(typ, o)
	if gone {
		content = nil
	}
	r.timeline.Declare(revision, k, content)
	return k
}

// revisionOf returns the revision of etcd behind a resource version.
func revisionOf(version string) uint64 {
	revision, _ := strconv.ParseUint(version, 10, 64)
	return revision
}

// follow records every state of the objects of a kind. After an interruption it continues where the watch ended, or
// lists all objects again.
func (r *Recorder) follow(ctx context.Context, gvr schema.GroupVersionResource, typ string) {
	for ; ctx.Err() == nil; wait(ctx, markEvery) {
		list, err := r.objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue // The kind does not exist yet, or the API server is away.
		}
		r.listed(typ, list)
		for version := list.GetResourceVersion(); version != "" && ctx.Err() == nil; {
			w, err := r.objects.Resource(gvr).Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
			if err != nil {
				break
			}
			version = r.take(w, typ, version)
			w.Stop()
		}
	}
}

// listed records a list of all objects of a kind.
func (r *Recorder) listed(typ string, list *unstructured.UnstructuredList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := map[history.Key]bool{}
	for _, o := range list.Items {
		k := r.declare(typ, o, false)
		is[k], r.there[k], r.latest[k] = true, true, revisionOf(o.GetResourceVersion())
	}
	for k := range r.there {
		if k.Type == typ && !is[k] {
			r.timeline.Declare(revisionOf(list.GetResourceVersion()), k, nil)
			delete(r.there, k)
		}
	}
}

// take records the events of a watch until it ends. It returns the last version, or an empty text if the watch cannot
// go on from there.
func (r *Recorder) take(w apiwatch.Interface, typ, version string) string {
	for event := range w.ResultChan() {
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == apiwatch.Error {
			return ""
		}
		if version = o.GetResourceVersion(); event.Type != apiwatch.Bookmark {
			r.mu.Lock()
			k := r.declare(typ, *o, event.Type == apiwatch.Deleted)
			r.latest[k] = revisionOf(version)
			if r.there[k] = true; event.Type == apiwatch.Deleted {
				delete(r.there, k)
			}
			r.mu.Unlock()
		}
	}
	return version
}

// mark records again and again which revision is the newest.
func (r *Recorder) mark(ctx context.Context) {
	namespaces := r.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for ; ctx.Err() == nil; wait(ctx, markEvery) {
		start := time.Now()
		attempt, cancel := context.WithTimeout(ctx, oneRound)
		list, err := namespaces.List(attempt, metav1.ListOptions{Limit: 1})
		cancel()
		if err == nil {
			r.mu.Lock()
			r.timeline.Mark(start, time.Now(), revisionOf(list.GetResourceVersion()))
			r.marked = start
			r.mu.Unlock()
		}
	}
}

// heat chooses the hot questions among those whose access was revoked.
func (r *Recorder) heat(ctx context.Context) {
	for ; ctx.Err() == nil; wait(ctx, heatEvery) {
		r.mu.Lock()
		allowed := r.timeline.Verifier(r.asked).Now()
		for _, i := range allowed {
			r.once[i] = true
		}
		r.hot = r.hot[:0]
		for i := range r.once {
			if !slices.Contains(allowed, i) && len(r.hot) < hotQuestions { // The order of a map is random.
				r.hot = append(r.hot, i)
			}
		}
		r.mu.Unlock()
	}
}

// ask asks one replica of a source.
func (r *Recorder) ask(ctx context.Context, s Source, replica int) {
	for ; ctx.Err() == nil; wait(ctx, askEvery) {
		urls := s.urls()
		i, ok := r.next()
		if !ok || replica >= len(urls) {
			wait(ctx, every)
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, oneRound)
		start := time.Now()
		allowed, err := s.ask(attempt, urls[replica], r.questions[i])
		end := time.Now()
		cancel()
		if err == nil {
			r.answered(history.Answer{Question: i, From: s.name + " at " + urls[replica], Start: start, End: end}, allowed)
		}
	}
}

// next draws a question. It returns false while too many answers wait to be judged.
func (r *Recorder) next() (i int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.hot) > 0 && rand.IntN(hotShare) > 0 {
		return pick(r.hot), len(r.pending) < maxPending
	}
	return rand.IntN(len(r.questions)), len(r.pending) < maxPending
}

// answered counts an answer, and keeps it for the next judgement if it is yes.
func (r *Recorder) answered(a history.Answer, allowed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts.Answers++; allowed {
		r.counts.Allows++
		r.pending = append(r.pending, a)
		r.counts.Pending = max(r.counts.Pending, len(r.pending))
	}
}

// TakeCounts returns the counts since the last call.
func (r *Recorder) TakeCounts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts
	r.counts = Counts{}
	return c
}

// Rest tells the recorder that every webhook answered by the objects of this time. Later answers may not be older.
func (r *Recorder) Rest(checked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = checked
}

// Judge reports every wrong answer so far. It waits until the recorder has seen all changes.
func (r *Recorder) Judge(ctx context.Context) error {
	now := time.Now()
	if err := r.catchUp(ctx, now); err != nil {
		return err
	}
	r.mu.Lock()
	verifier, settled := r.timeline.Verifier(r.asked), r.settled
	late := slices.IndexFunc(r.pending, func(a history.Answer) bool { return a.End.After(now) })
	if late < 0 {
		late = len(r.pending)
	}
	answers := r.pending[:late]
	r.pending = slices.Clone(r.pending[late:])
	r.timeline.Forget(now.Add(-kept))
	r.mu.Unlock()
	mixed, wrong := 0, 0
	for _, a := range answers {
		since := a.Start.Add(-announced)
		if !a.Start.Before(settled) && since.Before(settled) {
			since = settled
		}
		switch verifier.Verify(a, since) {
		case history.Mixed:
			mixed++
		case history.Wrong:
			if wrong++; wrong <= maxWrong {
				r.report(Violation{Allow, fmt.Errorf("%s allows %s at %s, which follows from no objects of the last %s; %s",
					a.From, r.questions[a.Question], a.End.Format(time.StampMilli), a.End.Sub(since).Round(time.Millisecond), verifier.LastAllowed(a))})
			}
		}
	}
	if wrong > maxWrong {
		r.report(Violation{Allow, fmt.Errorf("%d more answers follow from no objects of their time", wrong-maxWrong)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Mixed += mixed
	return nil
}

// catchUp waits until the watches have delivered all changes before a time.
func (r *Recorder) catchUp(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, caughtUpWithin)
	defer cancel()
	for {
		err := r.behind(ctx, before)
		if err == nil || ctx.Err() != nil {
			return err
		}
		wait(ctx, markEvery)
	}
}

// behind returns an error that names a change before a time that the watches have not delivered.
func (r *Recorder) behind(ctx context.Context, before time.Time) error {
	for gvr, typ := range accessKinds() {
		list, err := r.objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		r.mu.Lock()
		n := 0
		for k := range r.there {
			if k.Type == typ {
				n++
			}
		}
		for _, o := range list.Items {
			k := keyOf(typ, o.GetNamespace()+"/"+o.GetName())
			if !r.there[k] || r.latest[k] < revisionOf(o.GetResourceVersion()) {
				err = errors.Join(err, fmt.Errorf("the recorder has not seen %v yet", k))
			}
		}
		late := r.marked.Before(before)
		r.mu.Unlock()
		if err != nil || late || n > len(list.Items) {
			return errors.Join(err, fmt.Errorf("the recorder does not follow %s", gvr.Resource))
		}
	}
	return nil
}
