package query

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// LiveLister lists a namespace from the API server, not from the informer.
type LiveLister interface {
	List(ctx context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error]
}

// GetSyncStatus implements InferenceService.
func (s *Server) GetSyncStatus(ctx context.Context, r *inferencev1.GetSyncStatusRequest) (*inferencev1.GetSyncStatusResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	page, next, err := pageThatFits(s.requestedNamespaces(r.GetNamespace()), func(namespace string) string { return namespace }, r, s.buildNamespaceSyncStatus)
	if err != nil {
		return nil, err
	}
	return &inferencev1.GetSyncStatusResponse{Namespaces: page, NextPageToken: next, Revision: revision, Synced: true}, nil
}

func (s *Server) buildNamespaceSyncStatus(namespace string) *inferencev1.NamespaceSync {
	m := &inferencev1.NamespaceSync{Namespace: namespace}
	rules := s.ruleRows(namespace)
	m.Rules = int64(len(rules))
	rules = slices.DeleteFunc(rules, ruleRow.isSynced)
	m.NotSynced, m.NotSyncedTotal = toMessagesThatFit(rules[:min(maxListed, len(rules))], maxPart, ruleRow.toMessage), int64(len(rules))
	ruleSet := s.cfg.State.RuleSet(namespace)
	for _, source := range s.cfg.State.PossibleSourceNames(namespace) {
		in := s.cfg.State.PlanInput(namespace, source)
		m.Wanted += int64(len(ruleSet.DesiredBindings(in.Binding)))
		for _, change := range ruleSet.PlanSource(in).Differences() {
			if change.Obstacle == infer.NameConflict {
				m.Conflicts++
			} else {
				m.Pending++
			}
		}
	}
	if at := s.cfg.Finished(namespace); !at.IsZero() {
		m.LastPass = timestamppb.New(at)
	}
	return m
}

// maxChecks bounds the drift checks that run at a time, maxPreviews the previews.
const (
	maxChecks   = 2
	maxPreviews = 4
)

// CheckDrift implements InferenceService.
func (s *Server) CheckDrift(ctx context.Context, r *inferencev1.CheckDriftRequest) (*inferencev1.CheckDriftResponse, error) {
	revision, err := s.admitRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	leave, err := s.checks.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	m, ns := &inferencev1.CheckDriftResponse{Revision: revision, Synced: true}, infer.NamespaceInput{Name: r.GetNamespace()}
	unjudged, err := s.readLiveNamespace(ctx, &ns, m)
	if err != nil {
		return nil, err
	}
	extra, altered := &differenceList{list: &m.Extra, total: &m.ExtraTotal}, &differenceList{list: &m.Altered, total: &m.AlteredTotal}
	lists := map[inferencev1.BindingChange_Change]*differenceList{
		inferencev1.BindingChange_CHANGE_CREATED:  {list: &m.Missing, total: &m.MissingTotal},
		inferencev1.BindingChange_CHANGE_DELETED:  extra,
		inferencev1.BindingChange_CHANGE_EMPTIED:  extra,
		inferencev1.BindingChange_CHANGE_UPDATED:  altered,
		inferencev1.BindingChange_CHANGE_WAITING:  altered,
		inferencev1.BindingChange_CHANGE_CONFLICT: {list: &m.Conflicts, total: &m.ConflictsTotal},
	}
	rules := infer.EvaluateRuleSet(ns, s.cfg.State.Policy)
	unjudged = slices.DeleteFunc(unjudged, func(b *infer.Binding) bool { return len(rules.DesiredBindings(b)) == 0 })
	m.UnjudgedBindingsTotal = int64(len(unjudged))
	for _, b := range unjudged[:min(len(unjudged), maxListed)] {
		m.UnjudgedBindings = append(m.UnjudgedBindings, b.Name)
	}
	m.Truncated = m.GetTruncated() || len(unjudged) > maxListed
	for plan := range rules.PlanAllSources(ns.Bindings) {
		for _, change := range plan.Differences() {
			if d := lists[bindingChangeKind(change)]; d != nil {
				m.Truncated = !d.addDifference(change) || m.GetTruncated()
			}
		}
	}
	m.InStep = m.GetMissingTotal()+m.GetExtraTotal()+m.GetAlteredTotal()+m.GetConflictsTotal() == 0
	return m, nil
}

// differenceList collects the differences of one kind for an answer.
type differenceList struct {
	list  *[]*inferencev1.BindingChange
	total *int64
	bytes int
}

// addDifference counts a difference and lists it if the limits allow. It reports whether it was listed.
func (d *differenceList) addDifference(change infer.BindingDifference) (listed bool) {
	*d.total++
	if len(*d.list) == maxListed || d.bytes > maxList {
		return false
	}
	m := toBindingChangeMessage(change)
	d.bytes += proto.Size(m) + framing
	*d.list = append(*d.list, m)
	return true
}

// readLiveNamespace reads rules and bindings from the API server into ns. It returns the sources that were last written
// before the webhooks were in force.
func (s *Server) readLiveNamespace(ctx context.Context, ns *infer.NamespaceInput, m *inferencev1.CheckDriftResponse) (unjudged []*infer.Binding, err error) {
	err = event.DecodeEach(s.cfg.Lister.List(ctx, kinds.ImpliedRoles(), ns.Name), func(rule *rolev1alpha1.ImpliedRoles) {
		if rule.DeletionTimestamp != nil {
			return
		}
		ns.Rules = append(ns.Rules, state.ToInferRule(rule))
		if meta.IsStatusConditionFalse(rule.Status.Conditions, rolev1alpha1.Judged) {
			addUnjudgedRule(m, rule.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	since := s.cfg.Since(ctx)
	for change, err := range s.cfg.Lister.List(ctx, kinds.RoleBindings(), ns.Name) {
		if err != nil {
			return nil, err
		}
		b, of := new(infer.Binding), new(metav1.PartialObjectMetadata)
		if err := cmp.Or(change.Decode(b), change.Decode(of)); err != nil {
			return nil, err
		}
		ns.Bindings = append(ns.Bindings, b)
		if b.IsSource() && newestMetadataTime(of).Before(since) {
			unjudged = append(unjudged, b)
		}
	}
	slices.SortFunc(unjudged, func(a, b *infer.Binding) int { return strings.Compare(a.Name, b.Name) })
	return unjudged, nil
}

// newestMetadataTime returns the newest time in the metadata of an object: its creation or a managed field.
func newestMetadataTime(of *metav1.PartialObjectMetadata) time.Time {
	newest := of.CreationTimestamp.Time
	for _, m := range of.ManagedFields {
		if m.Time != nil && m.Time.After(newest) {
			newest = m.Time.Time
		}
	}
	return newest
}

// addUnjudgedRule counts a rule whose author was not checked, and lists it if the limit allows.
func addUnjudgedRule(m *inferencev1.CheckDriftResponse, rule string) {
	if m.UnjudgedTotal++; len(m.GetUnjudged()) < maxListed {
		m.Unjudged = append(m.Unjudged, rule)
	} else {
		m.Truncated = true
	}
}
