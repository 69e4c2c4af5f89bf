package opensearchsync

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// maxReason bounds the field reason of a status, in bytes.
const maxReason = 1024

// objectWriter is what is needed of the API server.
type objectWriter interface {
	Merge(ctx context.Context, kind kinds.Kind, seen event.Change, fields map[string]any) (event.Change, error)
	RemoveFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error)
}

// statusWriter writes statuses.
type statusWriter interface {
	Write(ctx context.Context, p consume.Reporter, s controller.Status) (event.Change, error)
	Refresh(ctx context.Context, kind kinds.Kind, obj event.Change) error
}

// statuses tell what became of objects, keep their records, and hold them while something is in OpenSearch for them.
type statuses struct {
	writer statusWriter
	kube   objectWriter
	// elsewhere reports whether there is a cluster of a UID, in whose passes its objects are seen to.
	elsewhere func(uid string) bool
	// clear is told of objects that are gone of which nothing is left.
	clear func(object)
	// rivals are told whose status is ours, and who goes.
	rivals  *rivals
	schemas *schemas
	// settling bounds how long a call of the replica before may still take effect.
	settling time.Duration
}

// withoutCluster reports that there is no cluster. It releases deleted objects for which nothing is in OpenSearch, and holds the others.
func (s *statuses) withoutCluster(ctx context.Context, p *consume.Pass[Key], objects []object, why string) error {
	return each(ctx, objects, func(o object) error {
		switch {
		case !o.leaving():
			return s.tell(ctx, p, o, *clusterMissing(o))
		case o.owes() || o.isLost():
			return s.tell(ctx, p, o, remains(o, why))
		default:
			return s.release(ctx, p, o, nil, true)
		}
	})
}

func clusterMissing(o object) *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Pending, Reason: "ClusterMissing", Message: "waiting for OpenSearchCluster " + o.value.Cluster() + " to exist",
	}
}

func clusterChanged(o object) *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Error, Reason: plan.ClusterChanged,
		Message: "OpenSearchCluster " + o.value.Cluster() + " is another than this object was made for: delete the object, and make it anew",
	}
}

// waiting tells objects of which nothing better is known what they wait for.
func (s *statuses) waiting(ctx context.Context, p *consume.Pass[Key], objects []object, v plan.Verdict) error {
	return each(ctx, objects, func(o object) error {
		state := o.value.State()
		known := state.State == opensearchv1.Created || state.State == opensearchv1.Error
		if !o.leaving() && known && state.ObservedGeneration == o.value.GetGeneration() {
			p.Report(o.Change, eventv1.Outcome_OUTCOME_PENDING, v.Message)
			return nil
		}
		return s.tell(ctx, p, o, v)
	})
}

// tell writes a verdict, and leaves the record.
func (s *statuses) tell(ctx context.Context, p *consume.Pass[Key], o object, v plan.Verdict) error {
	if o.leaving() && o.isLost() {
		v = plan.Verdict{State: opensearchv1.Error, Reason: "RecordMissing", Message: recordMissing + o.toForget()}
	}
	var further []condition.Condition
	f := fieldsOf(o.value)
	if has := meta.FindStatusCondition(o.value.State().Conditions, opensearchv1.OtherController); has != nil && v.Reason != plan.OtherWriter {
		// The conflict ends when a pass finds the user in step, not during an outage.
		further = append(further, condition.New(has.Type, o.says(has.Type), has.Reason, has.Message))
	}
	f.say(o.value, v, further...)
	return s.write(ctx, p, o, f, v)
}

func (s *statuses) write(ctx context.Context, p *consume.Pass[Key], o object, f fields, v plan.Verdict) error {
	status := controller.Status{Outcome: outcomeOf(v.State), Message: v.Message}
	c, changed := condition.Changed(o.value.State().Conditions, f.Conditions, opensearchv1.Ready)
	if changed && (v.State == opensearchv1.Error || v.State == opensearchv1.Ignored) {
		status.Notes = []condition.Note{{Warning: v.State == opensearchv1.Error, Reason: c.Reason, Message: c.Message}}
	}
	now, err := s.put(ctx, p, o, f, status)
	var kept struct {
		Status opensearchv1.Common `json:"status"`
	}
	if err == nil && now.Decode(&kept) == nil {
		s.rivals.wrote(now, kept.Status)
	}
	return err
}

func outcomeOf(state opensearchv1.State) eventv1.Outcome {
	switch state {
	case opensearchv1.Created:
		return eventv1.Outcome_OUTCOME_APPLIED
	case opensearchv1.Pending:
		return eventv1.Outcome_OUTCOME_PENDING
	default:
		return eventv1.Outcome_OUTCOME_REJECTED
	}
}

// refuse says what OpenSearch has refused, whatever becomes of the rest.
func (s *statuses) refuse(ctx context.Context, p *consume.Pass[Key], w work, d decision, done applied) error {
	return each(ctx, w.objects, func(o object) error {
		verdict, was := done.refused[string(o.value.GetUID())]
		if !was || o.gone() {
			return nil
		}
		f := recordOf(o, w, d.outcomes[string(o.value.GetUID())])
		f.say(o.value, verdict)
		return s.write(ctx, p, o, f, verdict)
	})
}

// conclude says what became of objects, and lets those go that leave nothing behind.
func (s *statuses) conclude(ctx context.Context, p *consume.Pass[Key], w work, d decision, done applied) error {
	say := func(o object) error {
		is := d.outcomes[string(o.value.GetUID())]
		f, verdict := recordOf(o, w, is), is.Verdict
		no, was := done.refused[string(o.value.GetUID())]
		switch {
		case was && o.gone():
			p.Report(o.Change, eventv1.Outcome_OUTCOME_REJECTED, no.Message)
			return nil
		case !was && done.undone[o.value.Entity()] && (o.gone() || !o.leaving() && verdict.State == opensearchv1.Created):
			// Until it is another's, what is there is still that of who is gone.
			p.Report(o.Change, eventv1.Outcome_OUTCOME_PENDING, "waits until "+o.value.Entity()+" is written")
			return nil
		case was:
			verdict = no
		default:
			f.Provisioned = is.after
		}
		if o.gone() || o.leaving() && verdict.State == opensearchv1.Created {
			return s.leave(ctx, p, o, w, is)
		}
		var further []condition.Condition
		if is.trimmed {
			further = append(further, condition.New(opensearchv1.PasswordTrimmed, true, "TrailingNewline",
				"the Secret's value ends in a line break, which is not part of the password"))
		}
		var err error
		if o.Change, err = s.renew(ctx, p, o, copyOf(o, w, f)); err != nil {
			return err
		}
		f.say(o.value, verdict, further...)
		return s.write(ctx, p, o, f, verdict)
	}
	var stay, leave []object
	for _, o := range w.objects {
		if o.leaving() {
			leave = append(leave, o)
		} else {
			stay = append(stay, o)
		}
	}
	if err := each(ctx, stay, say); err != nil { // A record of who stays is there before who leaves is gone.
		return err
	}
	return each(ctx, leave, say)
}

// leave lets an object go that may. While changes are contested, which could still bring what it asked for, it is held.
func (s *statuses) leave(ctx context.Context, p *consume.Pass[Key], o object, w work, is outcome) error {
	if !o.gone() && o.isLost() {
		return s.tell(ctx, p, o, plan.Verdict{})
	}
	if w.contest > 0 && !o.gone() {
		p.Report(o.Change, eventv1.Outcome_OUTCOME_PENDING, "waits until what OpenSearch has given no answer to has come to pass, or cannot any more")
		return nil
	}
	return s.release(ctx, p, o, is.after, w.contest == 0 && (!w.young || !is.unseen))
}

// release lets an object go, with nothing in its record but what is left: who reads its last state must not think that
// something else is still there. Of one that is gone it must be sure that nothing more comes before it is forgotten.
func (s *statuses) release(ctx context.Context, p *consume.Pass[Key], o object, left []opensearchv1.Provisioned, sure bool) error {
	defer s.rivals.forget(string(o.value.GetUID()))
	if o.gone() {
		switch {
		case len(left) > 0:
		case sure:
			s.clear(o)
		default:
			p.Again(s.settling)
		}
		p.Report(o.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
		return nil
	}
	now, was := o.Change, fieldsOf(o.value)
	f := was
	f.Provisioned = left
	if existing := o.value.Existing(); existing != nil && !*existing {
		f.setExisting(o.value, nil)
	}
	if !f.same(was) {
		var err error
		if o.status().ManagedServer == "" { // The copy counts.
			now, err = s.keep(ctx, p, o, copyOf(o, work{cleanup: true}, f), false)
		} else {
			now, err = s.put(ctx, p, o, f, controller.Status{Outcome: eventv1.Outcome_OUTCOME_PENDING, Message: "being deleted"})
		}
		if err != nil {
			return err
		}
	}
	if slices.Contains(o.value.GetFinalizers(), opensearchv1.Finalizer) {
		freed, err := s.kube.RemoveFinalizer(ctx, o.kind, now, opensearchv1.Finalizer)
		if err != nil {
			return err
		}
		if err := p.Wrote(ctx, o.Change, freed); err != nil {
			return err
		}
	}
	p.Report(o.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	return nil
}
