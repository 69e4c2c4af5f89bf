package opensearchsync

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// maxReason bounds the field reason of a status, in bytes.
const maxReason = 1024

// objectWriter is the part of the Kubernetes client that statuses need.
type objectWriter interface {
	MergePatch(ctx context.Context, kind kinds.Kind, seen event.Change, fields map[string]any) (event.Change, error)
	RemoveFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error)
}

type statusWriter interface {
	Write(ctx context.Context, p controller.UntypedRequest, s setup.StatusUpdate) (event.Change, error)
	RefreshAsStale(ctx context.Context, kind kinds.Kind, obj event.Change) error
}

// statusReporter writes the results and records of objects. It holds an object by a finalizer while OpenSearch has something
// of it.
type statusReporter struct {
	writer statusWriter
	kube   objectWriter
	// elsewhere reports whether the cluster with a UID is declared. Its own runs then handle its objects.
	elsewhere func(uid string) bool
	// clear reduces the record of a gone object to left, which OpenSearch may still hold.
	clear func(o declaredObject, left []opensearchv1.Provisioned)
	// rivals receives the statuses that were written, and the objects that are released.
	rivals  *foreignWriterDetector
	schemas *foreignSchemas
	// recorded receives the objects whose first record was written.
	recorded func(o event.Change)
}

// reportMissingCluster reports that there is no cluster. It releases deleted objects for which nothing is in OpenSearch, and
// holds the others.
func (s *statusReporter) reportMissingCluster(ctx context.Context, p *controller.Request[Key], objects []declaredObject, why string) error {
	return forEachParallel(ctx, objects, func(o declaredObject) error {
		switch {
		case !o.isDeleting():
			return s.writeVerdict(ctx, p, o, *clusterMissingVerdict(o))
		case o.hasRecord() || o.hasLostRecord():
			return s.writeVerdict(ctx, p, o, entitiesRemainVerdict(o, why))
		default:
			return s.removeFinalizer(ctx, p, o, nil)
		}
	})
}

func clusterMissingVerdict(o declaredObject) *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Pending, Reason: "ClusterMissing", Message: "waiting for OpenSearchCluster " + o.value.Cluster() + " to exist",
	}
}

func clusterChangedVerdict(o declaredObject) *plan.Verdict {
	return &plan.Verdict{
		State: opensearchv1.Error, Reason: plan.ClusterChanged,
		Message: "OpenSearchCluster " + o.value.Cluster() + " is not the cluster that this object was written to; delete the object and create it again",
	}
}

// reportWaiting reports v for each object. It keeps a status that holds a result for this generation, unless the object is
// being deleted.
func (s *statusReporter) reportWaiting(ctx context.Context, p *controller.Request[Key], objects []declaredObject, v plan.Verdict) error {
	return forEachParallel(ctx, objects, func(o declaredObject) error {
		state := o.value.CommonStatus()
		known := state.State == opensearchv1.Created || state.State == opensearchv1.Error
		if !o.isDeleting() && known && state.ObservedGeneration == o.value.GetGeneration() {
			p.Report(o.Change, eventv1.Outcome_OUTCOME_PENDING, v.Message)
			return nil
		}
		return s.writeVerdict(ctx, p, o, v)
	})
}

// writeVerdict writes a verdict and leaves the record unchanged.
func (s *statusReporter) writeVerdict(ctx context.Context, p *controller.Request[Key], o declaredObject, v plan.Verdict) error {
	if o.isDeleting() && o.hasLostRecord() {
		v = plan.Verdict{State: opensearchv1.Error, Reason: "RecordMissing", Message: recordMissing + o.forgetAnnotation()}
	}
	var further []condition.Condition
	f := statusFieldsOf(o.value)
	if has := meta.FindStatusCondition(o.value.CommonStatus().Conditions, opensearchv1.OtherController); has != nil && v.Reason != plan.OtherWriter {
		// The conflict ends when a run finds the user in step, not during an outage.
		further = append(further, condition.New(has.Type, o.isConditionTrue(has.Type), has.Reason, has.Message))
	}
	f.setVerdict(o.value, v, further...)
	return s.writeStatus(ctx, p, o, f, v)
}

func (s *statusReporter) writeStatus(ctx context.Context, p *controller.Request[Key], o declaredObject, f statusFields, v plan.Verdict) error {
	status := setup.StatusUpdate{Outcome: outcomeOfState(v.State), Message: v.Message}
	c, changed := condition.FindChangedCondition(o.value.CommonStatus().Conditions, f.Conditions, opensearchv1.Ready)
	if changed && (v.State == opensearchv1.Error || v.State == opensearchv1.Ignored) {
		status.Events = []condition.EventContent{{Warning: v.State == opensearchv1.Error, Reason: c.Reason, Message: c.Message}}
	}
	now, err := s.writeStatusFields(ctx, p, o, f, status)
	var kept struct {
		Status opensearchv1.Common `json:"status"`
	}
	if err == nil && now.Decode(&kept) == nil {
		s.rivals.recordOwnWrite(now, kept.Status)
	}
	return err
}

func outcomeOfState(state opensearchv1.State) eventv1.Outcome {
	switch state {
	case opensearchv1.Created:
		return eventv1.Outcome_OUTCOME_APPLIED
	case opensearchv1.Pending:
		return eventv1.Outcome_OUTCOME_PENDING
	default:
		return eventv1.Outcome_OUTCOME_REJECTED
	}
}

// writeRefusals writes the verdicts on refused actions, after a run that could not complete.
func (s *statusReporter) writeRefusals(ctx context.Context, p *controller.Request[Key], w syncInput, d kindDecision, done applyResult) error {
	return forEachParallel(ctx, w.objects, func(o declaredObject) error {
		verdict, was := done.refused[string(o.value.GetUID())]
		if !was || o.isDeleted() {
			return nil
		}
		f := requiredRecord(o, w, d.decisions[string(o.value.GetUID())])
		f.setVerdict(o.value, verdict)
		return s.writeStatus(ctx, p, o, f, verdict)
	})
}

// writeResults writes the results of a run, and releases the deleted objects that leave nothing behind.
func (s *statusReporter) writeResults(ctx context.Context, p *controller.Request[Key], w syncInput, d kindDecision, done applyResult) error {
	say := func(o declaredObject) error {
		is := d.decisions[string(o.value.GetUID())]
		f, verdict := requiredRecord(o, w, is), o.withForgetHint(is.Verdict)
		no, was := done.refused[string(o.value.GetUID())]
		switch {
		case o.isDeleted() && (was || verdict.State == opensearchv1.Error):
			p.Report(o.Change, eventv1.Outcome_OUTCOME_REJECTED, cmp.Or(no.Message, verdict.Message))
			return nil
		case !was && done.undone[o.value.OpenSearchName()] && (o.isDeleted() || !o.isDeleting() && verdict.State == opensearchv1.Created):
			// Until the new object has the entity, it belongs to the deleted one.
			p.Report(o.Change, eventv1.Outcome_OUTCOME_PENDING, "waits until "+o.value.OpenSearchName()+" is written")
			return nil
		case was:
			verdict = no
		default:
			f.Provisioned = is.after
		}
		switch {
		case !o.isDeleted() && (!o.isDeleting() || verdict.State != opensearchv1.Created):
		case !o.isDeleted() && o.hasLostRecord():
			return s.writeVerdict(ctx, p, o, plan.Verdict{})
		case o.isDeleted() || !is.canReappear(p.Key.Kind, w):
			return s.releaseDeleted(ctx, p, o, w, is)
		default:
			verdict = plan.UnansweredVerdict()
		}
		var further []condition.Condition
		if is.trimmed {
			further = append(further, condition.New(opensearchv1.PasswordTrimmed, true, "TrailingNewline",
				"the Secret's value ends in a line break, which is not part of the password"))
		}
		var err error
		if o.Change, err = s.updateRecordCopy(ctx, p, o, newRecordCopy(o, w, f)); err != nil {
			return err
		}
		f.setVerdict(o.value, verdict, further...)
		return s.writeStatus(ctx, p, o, f, verdict)
	}
	live := slices.DeleteFunc(slices.Clone(w.objects), declaredObject.isDeleting)
	if err := forEachParallel(ctx, live, say); err != nil { // A new owner's record must exist before the old owner is released.
		return err
	}
	deleting := slices.DeleteFunc(slices.Clone(w.objects), func(o declaredObject) bool { return !o.isDeleting() })
	return forEachParallel(ctx, deleting, say)
}

// releaseDeleted releases a deleted object, or reduces the record of a gone one.
func (s *statusReporter) releaseDeleted(ctx context.Context, p *controller.Request[Key], o declaredObject, w syncInput, is objectDecision) error {
	if !o.isDeleted() {
		return s.removeFinalizer(ctx, p, o, is.after)
	}
	left, sure := is.after, !is.canReappear(p.Key.Kind, w) && (w.young == 0 || !is.unseen)
	if w.young > 0 && w.contest == 0 {
		left = is.mayAppear
	}
	if sure || len(left) > 0 {
		s.clear(o, left)
	}
	if !sure && w.contest == 0 {
		p.RequeueAfter(w.young)
	}
	p.Report(o.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	s.rivals.forgetUID(string(o.value.GetUID()))
	return nil
}

// removeFinalizer removes the finalizer of an object. It first reduces the record to left, so that readers of the last state
// find nothing else in it.
func (s *statusReporter) removeFinalizer(ctx context.Context, p *controller.Request[Key], o declaredObject, left []opensearchv1.Provisioned) error {
	defer s.rivals.forgetUID(string(o.value.GetUID()))
	now, was := o.Change, statusFieldsOf(o.value)
	f := was
	f.Provisioned = left
	if existing := o.value.ExistedBefore(); existing != nil && !*existing {
		f.setExisting(o.value, nil)
	}
	if !f.isSameStatus(was) {
		var err error
		if o.statusFields().ManagedServer == "" { // The annotation holds the record.
			now, err = s.writeRecordCopy(ctx, p, o, newRecordCopy(o, syncInput{cleanup: true}, f), false)
		} else {
			now, err = s.writeStatusFields(ctx, p, o, f, setup.StatusUpdate{Outcome: eventv1.Outcome_OUTCOME_PENDING, Message: "being deleted"})
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
		if err := p.RecordWrite(ctx, o.Change, freed); err != nil {
			return err
		}
	}
	p.Report(o.Change, eventv1.Outcome_OUTCOME_APPLIED, "")
	return nil
}
