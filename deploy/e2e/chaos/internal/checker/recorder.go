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
	// lies is the number of answers that [AnswerRecorder.ProveDetection] falsifies, lieFor the time of each.
	lies, lieFor = 20, 50 * time.Millisecond
)

// AnswerSource is one API that answers questions.
type AnswerSource struct {
	name string
	// urls returns the addresses of the running replicas.
	urls func() []string
	ask  func(ctx context.Context, url string, q accessQuestion) (allowed bool, err error)
	// sinceRest means that an allow may follow from any state since the last rest. OpenFGA announces no staleness,
	// because its tuples stay while tuple-sync is down.
	sinceRest bool
}

// AnswerSources returns the sources of answers: the two APIs of webhook (CheckAccess and the SubjectAccessReviews of
// the API server), and OpenFGA's Check. OpenFGA counts as two replicas, so it receives as many questions as two.
func AnswerSources(webhooks, authorizers func() []string, openFGA *OpenFGAClient) []AnswerSource {
	return []AnswerSource{
		{name: "CheckAccess", urls: webhooks, ask: askCheckAccess},
		{name: "SubjectAccessReview", urls: authorizers, ask: askSubjectAccessReview},
		{name: "Check", urls: func() []string { return []string{"OpenFGA", "OpenFGA"} }, ask: openFGA.askIAM, sinceRest: true},
	}
}

// AnswerRecorder sends questions to webhooks and OpenFGA at a high rate. It judges each allow by the states that the
// API server had within the announced staleness. Most questions concern access that was revoked.
type AnswerRecorder struct {
	follower  objectFollower
	sources   []AnswerSource
	report    func(error)
	questions []accessQuestion
	asked     []history.AccessQuestion

	mu      sync.Mutex
	pending []recordedAllow
	// settled is the time of the last rest. Older states do not count.
	settled time.Time
	// once holds the questions that were allowed at some time, with the number of choices of hot questions since.
	once map[int]int
	// allowed holds the questions that are allowed now, hot those that are asked most.
	allowed, hot []int
	lie          plantedLie
	counts       AnswerCounts
}

// recordedAllow is an allow that waits for a judgement.
type recordedAllow struct {
	history.AllowAnswer

	sinceRest bool
}

// AnswerCounts counts the answers of all sources.
type AnswerCounts struct {
	// Answers counts all answers, Allows the allows among them, Mixed the allows that no single state explains.
	Answers, Allows, Mixed int
	// Planted counts the wrong allows that were planted, Found those that were found.
	Planted, Found int
}

// Add adds other counts.
func (c *AnswerCounts) Add(other AnswerCounts) {
	c.Answers, c.Allows, c.Mixed = c.Answers+other.Answers, c.Allows+other.Allows, c.Mixed+other.Mixed
	c.Planted, c.Found = c.Planted+other.Planted, c.Found+other.Found
}

// plantedLie replaces the answers of one server to a question by allows between two times.
type plantedLie struct {
	question    int
	url         string
	from, until time.Time
}

// coversAnswer reports whether the lie replaces an answer.
func (l plantedLie) coversAnswer(a history.AllowAnswer) bool {
	return a.Question == l.question && strings.HasSuffix(a.From, " "+l.url) && !a.End.Before(l.from) && a.End.Before(l.until)
}

// NewAnswerRecorder returns a recorder that calls report for each violation.
func NewAnswerRecorder(objects dynamic.Interface, sources []AnswerSource, report func(error)) *AnswerRecorder {
	questions := allQuestions()
	return &AnswerRecorder{
		follower: objectFollower{objects: objects, latest: map[history.Key]uint64{}},
		sources:  sources, report: report, questions: questions, asked: historyQuestions(questions), once: map[int]int{},
	}
}

func historyQuestions(all []accessQuestion) (asked []history.AccessQuestion) {
	for _, q := range all {
		asked = append(asked, history.AccessQuestion{
			User: q.Subject.User, Groups: q.Subject.Groups, Permission: permissionOf(q),
			On: history.Key{Type: q.target.OpenFGAType(), Namespace: q.Resource.Namespace, Name: q.Resource.Name},
		})
	}
	return asked
}

// Run follows the objects and asks until ctx ends. replicas is the number of replicas of each source.
func (r *AnswerRecorder) Run(ctx context.Context, replicas int) {
	var all sync.WaitGroup
	all.Go(func() { r.follower.followAll(ctx) })
	all.Go(func() { r.chooseHotQuestions(ctx) })
	for _, s := range r.sources {
		for i := range replicas {
			all.Go(func() { r.askReplica(ctx, s, i) })
		}
	}
	all.Wait()
}

// RecordWritten records an object that the API server returned for a write.
func (r *AnswerRecorder) RecordWritten(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	r.follower.recordWritten(gvr, o)
}

// chooseHotQuestions chooses the hot questions at random among those whose access was revoked last.
func (r *AnswerRecorder) chooseHotQuestions(ctx context.Context) {
	for ; ctx.Err() == nil; sleepContext(ctx, heatEvery) {
		allowed := r.follower.takeVerifier(r.asked, time.Time{}).AllowedNow()
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

// askReplica sends questions to one replica of a source.
func (r *AnswerRecorder) askReplica(ctx context.Context, s AnswerSource, replica int) {
	for n := 0; ctx.Err() == nil; n++ {
		urls := s.urls()
		i, ok := r.nextQuestion(n)
		if !ok || replica >= len(urls) {
			sleepContext(ctx, every)
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, oneRound)
		start := time.Now()
		allowed, err := s.ask(attempt, urls[replica], r.questions[i])
		end := time.Now()
		cancel()
		if err == nil {
			answer := history.AllowAnswer{Question: i, From: s.name + " at " + urls[replica], Start: start, End: end}
			r.recordAnswer(recordedAllow{answer, s.sinceRest}, allowed)
		}
		sleepContext(ctx, askEvery)
	}
}

// nextQuestion returns the n-th question of a loop: each hot one in turn, then an allowed one or any. It returns false
// while too many answers wait for a judgement.
func (r *AnswerRecorder) nextQuestion(n int) (i int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok = len(r.pending) < maxPending
	switch at := n % askCycle; {
	case at < len(r.hot):
		return r.hot[at], ok
	case n/askCycle%2 == 0 && len(r.allowed) > 0:
		return pickRandom(r.allowed), ok
	default:
		return rand.IntN(len(r.questions)), ok
	}
}

// recordAnswer counts an answer. It keeps an allow for the next judgement.
func (r *AnswerRecorder) recordAnswer(a recordedAllow, allowed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts.Answers++; allowed || r.lie.coversAnswer(a.AllowAnswer) {
		r.counts.Allows++
		r.pending = append(r.pending, a)
	}
}

// TakeCounts returns the counts since the last call.
func (r *AnswerRecorder) TakeCounts() AnswerCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts
	r.counts = AnswerCounts{}
	return c
}

// NoteQuiescence records that every webhook and OpenFGA answered from the objects that existed at the time checked.
// Later answers may not use older objects.
func (r *AnswerRecorder) NoteQuiescence(checked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = checked
}

// ReportWrongAllows reports every wrong allow since the last call. It waits until the recorder has seen all changes.
func (r *AnswerRecorder) ReportWrongAllows(ctx context.Context) error {
	_, err := r.judgeAnswers(ctx, nil)
	return err
}

// judgeAnswers judges every allow since the last call. It reports the wrong ones, and returns those that a lie planted.
func (r *AnswerRecorder) judgeAnswers(ctx context.Context, planted []plantedLie) (found []history.AllowAnswer, err error) {
	now := time.Now()
	if err := r.follower.waitCaughtUp(ctx, now); err != nil {
		return nil, err
	}
	answers, settled := r.takePending(now)
	forget := now.Add(-kept)
	if settled.Before(forget) {
		forget = settled
	}
	verifier := r.follower.takeVerifier(r.asked, forget)
	mixed, wrong := 0, 0
	for _, a := range answers {
		since, judged := a.oldestState(settled)
		if !judged {
			continue
		}
		switch verdict := verifier.VerifyAnswer(a.AllowAnswer, since); {
		case verdict == history.Mixed:
			mixed++
		case verdict == history.Wrong && slices.ContainsFunc(planted, func(l plantedLie) bool { return l.coversAnswer(a.AllowAnswer) }):
			found = append(found, a.AllowAnswer)
		case verdict == history.Wrong:
			if wrong++; wrong <= maxWrong {
				r.report(Violation{Allow, fmt.Errorf("%s allows %s at %s, which follows from no objects of the last %s; %s",
					a.From, r.questions[a.Question], a.End.Format(time.StampMilli), a.End.Sub(since).Round(time.Millisecond),
					verifier.DescribeLastAllowed(a.AllowAnswer))})
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

// oldestState returns the time since which an allow must follow from a state. settled is the time of the last rest.
// judged is false if the allow cannot be judged: the answer of OpenFGA began before this rest, or there was no rest
// yet.
func (a recordedAllow) oldestState(settled time.Time) (since time.Time, judged bool) {
	since = a.Start.Add(-announced)
	switch {
	case a.sinceRest:
		return settled, !settled.IsZero() && !a.Start.Before(settled)
	case !a.Start.Before(settled) && since.Before(settled):
		return settled, true
	}
	return since, true
}

// takePending removes the pending answers that ended before a time, and returns them. settled is the time of the last
// rest.
func (r *AnswerRecorder) takePending(before time.Time) (answers []recordedAllow, settled time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := slices.IndexFunc(r.pending, func(a recordedAllow) bool { return a.End.After(before) })
	if late < 0 {
		late = len(r.pending)
	}
	answers = r.pending[:late]
	r.pending = slices.Clone(r.pending[late:])
	return answers, r.settled
}

// ProveDetection proves that the recorder finds a wrong allow that lasts 50 ms. Several times, it replaces the answers
// of one replica to a revoked question by allows for this time. It counts how many of these lies a judgement finds. The
// system must be at rest.
func (r *AnswerRecorder) ProveDetection(ctx context.Context) error {
	var planted []plantedLie
	for i := range lies {
		if l, ok := r.plantLie(r.sources[i%len(r.sources)]); ok {
			planted = append(planted, l)
		}
		sleepContext(ctx, 2*lieFor)
	}
	wrong, err := r.judgeAnswers(ctx, planted)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range planted {
		if r.counts.Planted++; slices.ContainsFunc(wrong, l.coversAnswer) {
			r.counts.Found++
		}
	}
	return nil
}

// plantLie begins a lie of a source. It returns false if no access was revoked yet, or if no replica runs.
func (r *AnswerRecorder) plantLie(by AnswerSource) (l plantedLie, ok bool) {
	urls := by.urls()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(urls) == 0 || len(r.hot) == 0 {
		return l, false
	}
	now := time.Now()
	r.lie = plantedLie{question: pickRandom(r.hot), url: pickRandom(urls), from: now, until: now.Add(lieFor)}
	return r.lie, true
}
