package checker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/deploy/e2e/chaos/internal/history"
)

const (
	// announced bounds the age of the state behind an answer: --max-staleness of webhook, and the 3 s for which a
	// watcher that is cut off from the API server still counts as current.
	announced = 15*time.Second + 3*time.Second
	// askEvery is the pause after an answer of one server. All but one of askCycle questions are hot, so a replica
	// receives each hot question more often than every 50 ms from each source.
	askEvery, askCycle = 8 * time.Millisecond, 4
	// heatEvery is the time after which other questions become hot. They are among the lastRevoked ones.
	heatEvery, lastRevoked = 5 * time.Second, 30
	// maxPending bounds the answers that wait for a judgement, about 80 bytes each. The recorder asks nothing above it.
	maxPending = 1 << 18
	// kept is the time for which old changes are kept, to describe a wrong answer.
	kept = 2 * time.Minute
	// maxWrong bounds the reports of one judgement.
	maxWrong = 5
	// lies is the number of answers that [Recorder.Plant] falsifies, lieFor the time of each.
	lies, lieFor = 20, 50 * time.Millisecond
)

// Source is one API of the webhooks.
type Source struct {
	name string
	// urls returns the addresses of the running replicas.
	urls func() []string
	ask  func(ctx context.Context, url string, q question) (allowed bool, err error)
}

// Sources returns both APIs: CheckAccess, and the SubjectAccessReviews of the API server.
func Sources(webhooks, authorizers func() []string) []Source {
	return []Source{{"CheckAccess", webhooks, ask}, {"SubjectAccessReview", authorizers, review}}
}

// Recorder sends questions to webhooks at a high rate. It judges each allow by the states that the API server had
// inside the announced staleness. Most questions concern access that was revoked.
type Recorder struct {
	follower  follower
	sources   []Source
	report    func(error)
	questions []question
	asked     []history.Question

	mu      sync.Mutex
	pending []history.Answer
	// settled is the time from which no older state may count.
	settled time.Time
	// once holds the questions that were allowed at some time, with the number of choices of hot questions since.
	once map[int]int
	// allowed holds the questions that are allowed now, hot those that are asked most.
	allowed, hot []int
	lie          lie
	counts       Counts
}

// Counts counts the answers of webhooks.
type Counts struct {
	// Answers counts all answers, Allows the allows among them, Mixed the allows that no single state explains.
	Answers, Allows, Mixed int
	// Planted counts the wrong allows that were planted, Found those that were found.
	Planted, Found int
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	c.Answers, c.Allows, c.Mixed = c.Answers+other.Answers, c.Allows+other.Allows, c.Mixed+other.Mixed
	c.Planted, c.Found = c.Planted+other.Planted, c.Found+other.Found
}

// lie replaces the answers of one server to a question by allows between two times.
type lie struct {
	question    int
	url         string
	from, until time.Time
}

// covers reports whether the lie replaces an answer.
func (l lie) covers(a history.Answer) bool {
	return a.Question == l.question && strings.HasSuffix(a.From, " "+l.url) && !a.End.Before(l.from) && a.End.Before(l.until)
}

// NewRecorder returns a recorder that calls report for each violation.
func NewRecorder(objects dynamic.Interface, sources []Source, report func(error)) *Recorder {
	questions := allQuestions()
	return &Recorder{
		follower: follower{objects: objects, latest: map[history.Key]uint64{}},
		sources:  sources, report: report, questions: questions, asked: historyQuestions(questions), once: map[int]int{},
	}
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
	all.Go(func() { r.follower.run(ctx) })
	all.Go(func() { r.heat(ctx) })
	for _, s := range r.sources {
		for i := range replicas {
			all.Go(func() { r.ask(ctx, s, i) })
		}
	}
	all.Wait()
}

// Wrote records an object that the API server returned for a write.
func (r *Recorder) Wrote(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	r.follower.wrote(gvr, o)
}

// heat chooses the hot questions at random among those whose access was revoked last.
func (r *Recorder) heat(ctx context.Context) {
	for ; ctx.Err() == nil; wait(ctx, heatEvery) {
		allowed := r.follower.verifier(r.asked, time.Time{}).Now()
		r.mu.Lock()
		for i := range r.once {
			r.once[i]++
		}
		for _, i := range allowed {
			r.once[i] = 0
		}
		revoked := slices.SortedFunc(maps.Keys(r.once), func(a, b int) int { return cmp.Compare(r.once[a], r.once[b]) })
		revoked = slices.DeleteFunc(revoked, func(i int) bool { return r.once[i] == 0 })
		revoked = revoked[:min(len(revoked), lastRevoked)]
		rand.Shuffle(len(revoked), func(i, j int) { revoked[i], revoked[j] = revoked[j], revoked[i] })
		r.allowed, r.hot = allowed, revoked[:min(len(revoked), askCycle-1)]
		r.mu.Unlock()
	}
}

// ask sends questions to one replica of a source.
func (r *Recorder) ask(ctx context.Context, s Source, replica int) {
	for n := 0; ctx.Err() == nil; n++ {
		urls := s.urls()
		i, ok := r.next(n)
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
		wait(ctx, askEvery)
	}
}

// next returns the n-th question of a loop: each hot one in turn, then an allowed one or any. It returns false while too
// many answers wait for a judgement.
func (r *Recorder) next(n int) (i int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok = len(r.pending) < maxPending
	switch at := n % askCycle; {
	case at < len(r.hot):
		return r.hot[at], ok
	case n/askCycle%2 == 0 && len(r.allowed) > 0:
		return pick(r.allowed), ok
	default:
		return rand.IntN(len(r.questions)), ok
	}
}

// answered counts an answer. It keeps an allow for the next judgement.
func (r *Recorder) answered(a history.Answer, allowed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts.Answers++; allowed || r.lie.covers(a) {
		r.counts.Allows++
		r.pending = append(r.pending, a)
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

// Rest records that every webhook answered by the objects of this time. Later answers may not be older.
func (r *Recorder) Rest(checked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = checked
}

// Judge reports every wrong allow since the last call. It waits until the recorder has seen all changes.
func (r *Recorder) Judge(ctx context.Context) error {
	_, err := r.judge(ctx, nil)
	return err
}

// judge judges every allow since the last call. It reports the wrong ones, and returns those that a lie planted.
func (r *Recorder) judge(ctx context.Context, planted []lie) (found []history.Answer, err error) {
	now := time.Now()
	if err := r.follower.catchUp(ctx, now); err != nil {
		return nil, err
	}
	verifier := r.follower.verifier(r.asked, now.Add(-kept))
	answers, settled := r.takePending(now)
	mixed, wrong := 0, 0
	for _, a := range answers {
		since := a.Start.Add(-announced)
		if !a.Start.Before(settled) && since.Before(settled) {
			since = settled
		}
		switch verdict := verifier.Verify(a, since); {
		case verdict == history.Mixed:
			mixed++
		case verdict == history.Wrong && slices.ContainsFunc(planted, func(l lie) bool { return l.covers(a) }):
			found = append(found, a)
		case verdict == history.Wrong:
			if wrong++; wrong <= maxWrong {
				r.report(Violation{Allow, fmt.Errorf("%s allows %s at %s, which follows from no objects of the last %s; %s",
					a.From, r.questions[a.Question], a.End.Format(time.StampMilli), a.End.Sub(since).Round(time.Millisecond), verifier.LastAllowed(a))})
			}
		}
	}
	if wrong > maxWrong {
		r.report(Violation{Allow, fmt.Errorf("%d more wrong allows: only the first %d are printed", wrong-maxWrong, maxWrong)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Mixed += mixed
	return found, nil
}

// takePending returns the pending answers that ended before a time, and the time since which they may not be older.
func (r *Recorder) takePending(before time.Time) (answers []history.Answer, settled time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := slices.IndexFunc(r.pending, func(a history.Answer) bool { return a.End.After(before) })
	if late < 0 {
		late = len(r.pending)
	}
	answers = r.pending[:late]
	r.pending = slices.Clone(r.pending[late:])
	return answers, r.settled
}

// Plant proves that the recorder finds a wrong allow that lasts 50 ms. It replaces the answers of one replica to a
// revoked question by allows for so long, several times, and counts how many of these lies a judgement finds. The
// system must be at rest.
func (r *Recorder) Plant(ctx context.Context) error {
	var planted []lie
	for range lies {
		if l, ok := r.plant(); ok {
			planted = append(planted, l)
		}
		wait(ctx, 2*lieFor)
	}
	wrong, err := r.judge(ctx, planted)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range planted {
		if r.counts.Planted++; slices.ContainsFunc(wrong, l.covers) {
			r.counts.Found++
		}
	}
	return nil
}

// plant begins a lie. It returns false if no access was revoked yet or no replica runs.
func (r *Recorder) plant() (l lie, ok bool) {
	urls := pick(r.sources).urls()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(urls) == 0 || len(r.hot) == 0 {
		return l, false
	}
	now := time.Now()
	r.lie = lie{question: pick(r.hot), url: pick(urls), from: now, until: now.Add(lieFor)}
	return r.lie, true
}
