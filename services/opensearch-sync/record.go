package opensearchsync

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/truncate"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// statusFields holds the fields of a status that opensearch-sync writes.
type statusFields struct {
	opensearchv1.Common `json:",inline"`
	ExistingRole        *bool                      `json:"existingRole,omitempty"`
	ExistingTenant      *bool                      `json:"existingTenant,omitempty"`
	ExistingActionGroup *bool                      `json:"existingActionGroup,omitempty"`
	Provisioned         []opensearchv1.Provisioned `json:"provisioned,omitempty"`
}

// statusFieldsOf returns these fields of an object.
func statusFieldsOf(o opensearchv1.DeclaredObject) statusFields {
	f := statusFields{Common: *o.CommonStatus()}
	f.Conditions = condition.MergeConditions(f.Conditions, ownedConditionTypes(), 0, metav1.Time{})
	switch o := o.(type) {
	case *opensearchv1.OpensearchRole:
		f.ExistingRole = o.Status.ExistingRole
	case *opensearchv1.OpensearchTenant:
		f.ExistingTenant = o.Status.ExistingTenant
	case *opensearchv1.OpensearchActionGroup:
		f.ExistingActionGroup = o.Status.ExistingActionGroup
	case *opensearchv1.OpensearchUserRoleBinding:
		f.Provisioned = o.Status.Provisioned
	}
	return f
}

func ownedConditionTypes() []string {
	return []string{opensearchv1.Ready, opensearchv1.PasswordTrimmed, opensearchv1.OtherController}
}

func (f *statusFields) setExisting(o opensearchv1.DeclaredObject, existing *bool) {
	switch o.(type) {
	case *opensearchv1.OpensearchRole:
		f.ExistingRole = existing
	case *opensearchv1.OpensearchTenant:
		f.ExistingTenant = existing
	case *opensearchv1.OpensearchActionGroup:
		f.ExistingActionGroup = existing
	}
}

func (f statusFields) isSameStatus(other statusFields) bool {
	a, err := json.Marshal(f)
	b, otherErr := json.Marshal(other)
	return err == nil && otherErr == nil && bytes.Equal(a, b)
}

// setVerdict sets state, reason and conditions for a verdict.
func (f *statusFields) setVerdict(o opensearchv1.DeclaredObject, v plan.Verdict, further ...condition.Condition) {
	f.State, f.Reason, f.ObservedGeneration = v.State, truncate.Text(v.Message, maxReason), o.GetGeneration()
	status := condition.New(opensearchv1.Ready, v.State == opensearchv1.Created, v.Reason, v.Message)
	if v.Reason == plan.OtherWriter {
		further = append(further, condition.New(opensearchv1.OtherController, true, v.Reason, v.Message))
	}
	further = append(further, status)
	var types []string
	for _, c := range further {
		types = append(types, c.Type)
	}
	f.Conditions = condition.MergeConditions(o.CommonStatus().Conditions, types, o.GetGeneration(), metav1.Now().Rfc3339Copy(), further...)
}

// requiredRecord returns the record that an object must have before any write for it.
func requiredRecord(o declaredObject, w syncInput, d objectDecision) statusFields {
	f := statusFieldsOf(o.value)
	if f.State == "" {
		f.State = opensearchv1.Pending
	}
	f.ManagedCluster, f.ManagedServer = string(w.cluster.UID), w.server
	if d.existing != nil {
		f.setExisting(o.value, d.existing)
	}
	f.Provisioned = d.before
	return f
}

// objectsLackingRecord returns the objects that need a new record or a finalizer before the actions run.
func objectsLackingRecord(w syncInput, d kindDecision) (all []declaredObject) {
	touched := d.uidsWithActions(func(plan.Action) bool { return true })
	for _, o := range w.objects {
		is, known := d.decisions[string(o.value.GetUID())]
		if !known || o.isDeleted() || !touched[string(o.value.GetUID())] && !is.holds {
			continue
		}
		if f := requiredRecord(o, w, is); !f.isSameStatus(statusFieldsOf(o.value)) || is.holds && !hasRecordCopy(o, newRecordCopy(o, w, f)) ||
			needsFinalizer(o, is) {
			all = append(all, o)
		}
	}
	return all
}

func needsFinalizer(o declaredObject, is objectDecision) bool {
	return is.holds && !o.isDeleting() && !slices.Contains(o.value.GetFinalizers(), opensearchv1.Finalizer)
}

// hasUnrecordedObject reports whether any object lacks its record.
func (s *statusReporter) hasUnrecordedObject(w syncInput, d kindDecision) bool {
	return len(objectsLackingRecord(w, d)) > 0
}

// writeRecords writes the records and finalizers that must exist before the actions run. It reports whether any was lacking.
func (s *statusReporter) writeRecords(ctx context.Context, p *controller.Request[Key], w syncInput, d kindDecision) (recorded bool, err error) {
	var mu sync.Mutex
	all := objectsLackingRecord(w, d)
	return len(all) > 0, forEachParallel(ctx, all, func(o declaredObject) error {
		is := d.decisions[string(o.value.GetUID())]
		f := requiredRecord(o, w, is)
		now, err := s.writeStatusFields(ctx, p, o, f, setup.StatusUpdate{Outcome: eventv1.Outcome_OUTCOME_PENDING, Message: "being written"})
		if kept := newRecordCopy(o, w, f); err == nil && (needsFinalizer(o, is) || !hasRecordCopy(o, kept)) {
			held := o
			held.Change = now
			_, err = s.writeRecordCopy(ctx, p, held, kept, needsFinalizer(o, is))
		}
		if err == nil && !o.hasRecord() {
			s.recorded(o.Change)
		}
		if errors.Is(err, kube.ErrTooLarge) { // The next attempt plans without this object.
			mu.Lock()
			defer mu.Unlock()
			w.unrecorded[string(o.value.GetUID())] = recordTooLargeVerdict()
			return fmt.Errorf("recording %s: %w", o.Key, reconcile.ErrStale)
		}
		return err
	})
}

// toProvisioned returns a record in the form of the status.
func toProvisioned(record map[string]plan.MappingEntries) []opensearchv1.Provisioned {
	var all []opensearchv1.Provisioned
	for _, role := range slices.Sorted(maps.Keys(record)) {
		e := record[role]
		all = append(all, opensearchv1.Provisioned{Role: role, Users: e.Users, BackendRoles: e.BackendRoles, Hosts: e.Hosts, AndBackendRoles: e.And})
	}
	return all
}
