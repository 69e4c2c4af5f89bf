package plan

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/truncate"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// These are reasons of the condition ModelSynced. Forbidden is one of StoreSynced.
const (
	ReasonMerged          = "Merged"
	ReasonModulesRejected = "ModulesRejected"
	ReasonInvalidCore     = corev1alpha1.InvalidCore
	ReasonLimitExceeded   = "LimitExceeded"
	ReasonModelRefused    = "ModelRefused"
	ReasonNoStore         = "NoStore"
	ReasonNotAdopted      = "NotAdopted"
	ReasonForbidden       = "Forbidden"
)

// MaxModules bounds the modules that a Store's status lists.
const MaxModules = 200

// maxMessage bounds the message for each module, in bytes.
const maxMessage = 1024

// ownedStoreConditions returns the condition types that store-sync writes to a Store.
func ownedStoreConditions() []string {
	return []string{
		corev1alpha1.StoreSynced, corev1alpha1.ModelSynced, corev1alpha1.ModulesInSync, corev1alpha1.NameUnique,
		corev1alpha1.NameInSync, corev1alpha1.Adopted, corev1alpha1.Deleting,
	}
}

// OwnedStoreStatus returns the part of a Store's status that store-sync writes.
func OwnedStoreStatus(s corev1alpha1.StoreStatus) corev1alpha1.StoreStatus {
	return corev1alpha1.StoreStatus{
		StoreID: s.StoreID, Adopted: s.Adopted, AuthorizationModelID: s.AuthorizationModelID, ModelDigest: s.ModelDigest, Modules: s.Modules, Live: s.Live,
		Conditions: condition.MergeConditions(s.Conditions, ownedStoreConditions(), 0, metav1.Time{}),
	}
}

// DesiredStoreStatus returns the desired value of that part. During a pass, fields that are not known yet keep their values.
func DesiredStoreStatus(in Input, obs Observed) corev1alpha1.StoreStatus {
	s := OwnedStoreStatus(in.Store.Status)
	types, set := ownedStoreConditions(), []condition.Condition{}
	switch {
	case obs.Forbidden != nil:
		set = forbiddenConditions(obs.Forbidden)
		types = []string{corev1alpha1.StoreSynced}
	case in.isDeleting():
		if why, waiting := deletionBlocker(in); waiting {
			set = append(set, why)
		}
	default:
		c := chooseOpenFGAStore(in, obs)
		s.StoreID, s.AuthorizationModelID, s.ModelDigest = c.id, in.liveModelID(obs, c.id), ""
		s.Adopted = s.Adopted || c.adopted
		if !in.isModelPending(obs) {
			s.Modules = moduleStatuses(in, c)
		}
		if modelProblem(in, obs, c) == nil {
			s.Live = in.nextLiveCoreRecord()
		}
		types, set = nil, desiredStoreConditions(in, obs, c)
		for _, found := range set {
			if types = append(types, found.Type); found.Type == corev1alpha1.ModelSynced && found.IsTrue() {
				s.ModelDigest = in.Store.ModelDigest()
			}
		}
	}
	s.Conditions = condition.MergeConditions(s.Conditions, types, in.Store.Generation, in.Now, set...)
	return s
}

// forbiddenConditions returns the conditions of a Store that the API server does not let us change.
func forbiddenConditions(why error) []condition.Condition {
	message := truncate.Line("the API server does not let store-sync change this object; store-sync tries again: "+why.Error(), maxMessage)
	return []condition.Condition{condition.New(corev1alpha1.StoreSynced, false, ReasonForbidden, message)}
}

// isModelPending reports whether the model of a Store still has to be written. Until then the status does not report on it.
func (in Input) isModelPending(obs Observed) bool {
	c := chooseOpenFGAStore(in, obs)
	return obs.Forbidden == nil && !in.isDeleting() && modelProblem(in, obs, c) == nil && !isMergedModelLive(in, obs, c.id)
}

// desiredStoreConditions returns the conditions of a Store that is not in deletion.
func desiredStoreConditions(in Input, obs Observed, c storeChoice) []condition.Condition {
	set := []condition.Condition{storeSyncedCondition(in, obs, c)}
	if !in.isModelPending(obs) {
		set = append(set, modelSyncedCondition(in, obs, c), modulesInSyncCondition(in, c))
	}
	if c.id == "" {
		return set
	}
	for _, check := range []func(Input, Observed, string) (condition.Condition, bool){nameUniqueCondition, nameInSyncCondition, adoptedCondition} {
		if found, ok := check(in, obs, c.id); ok {
			set = append(set, found)
		}
	}
	return set
}

// currentCondition returns a condition from the Store's status. The name of an OpenFGA store does not depend on the spec, and
// neither do other stores with that name. The condition therefore holds for the current generation too.
func currentCondition(in Input, typ string) (condition.Condition, bool) {
	if c := meta.FindStatusCondition(in.Store.Status.Conditions, typ); c != nil {
		return withoutDates(c), true
	}
	return condition.Condition{}, false
}

// liveModelID returns the id of the live model in the store.
func (in Input) liveModelID(obs Observed, id string) string {
	latest, known := obs.latestModel(id)
	switch {
	case id == "":
		return ""
	case known:
		return latest.GetId()
	case id == in.recordedStoreID():
		return in.Store.Status.AuthorizationModelID
	}
	return ""
}

// isMergedModelLive reports whether the store's newest model is known to equal the merge.
func isMergedModelLive(in Input, obs Observed, id string) bool {
	latest, known := obs.latestModel(id)
	return known && in.mergeErr() == nil && model.Equal(latest, in.Merged.Model)
}

func modelSyncedCondition(in Input, obs Observed, c storeChoice) condition.Condition {
	id := in.liveModelID(obs, c.id)
	is := func(holds bool, reason, message string) condition.Condition {
		return condition.New(corev1alpha1.ModelSynced, holds, reason, message)
	}
	if p := modelProblem(in, obs, c); p != nil {
		if id != "" {
			p.message += "; model " + id + ", the last valid one, stays in force"
		}
		return is(false, p.reason, p.message)
	}
	if core := in.coreMergeReport(); core.State == model.LastGoodLive {
		reason := ReasonInvalidCore
		if core.Exceeds {
			reason = ReasonLimitExceeded
		}
		return is(false, reason, fmt.Sprintf("spec.coreModule: %s; model %s is live, with the core module of generation %d and all other modules: %s",
			core.Message, id, in.Store.Status.Live.Generation, remainingRightsText(core)))
	}
	left := in.sourcesInStates(model.LastGoodLive, model.Rejected)
	merged := len(in.Merged.Reports) - len(left)
	if len(left) == 0 {
		return is(true, ReasonMerged, fmt.Sprintf("model %s holds all %d modules", id, merged))
	}
	message := fmt.Sprintf("model %s holds %d of %d modules", id, merged, merged+len(left))
	if rejected := in.sourcesInStates(model.Rejected); len(rejected) > 0 {
		message += "; rejected: " + enumerateNames(rejected)
	}
	if kept := in.sourcesInStates(model.LastGoodLive); len(kept) > 0 {
		message += "; with the last valid version in force: " + enumerateNames(kept)
	}
	return is(true, ReasonModulesRejected, message+" (status.modules says why)")
}

// modelProblem returns the reason if the merge of this generation cannot be live.
func modelProblem(in Input, obs Observed, c storeChoice) *conditionProblem {
	err := in.mergeErr()
	switch core, tooLarge := (*model.CoreError)(nil), (*model.LimitError)(nil); {
	case errors.As(err, &core):
		return &conditionProblem{ReasonInvalidCore, "spec.coreModule: " + core.Message}
	case errors.Is(err, errNoTypes):
		return &conditionProblem{ReasonInvalidCore, "spec.coreModule: " + err.Error()}
	case errors.As(err, &tooLarge):
		return &conditionProblem{ReasonLimitExceeded, tooLarge.Error()}
	case err != nil:
		return &conditionProblem{ReasonModelRefused, err.Error()}
	case obs.Refused != nil:
		return &conditionProblem{ReasonModelRefused, obs.Refused.Error()}
	case c.problem != nil:
		return &conditionProblem{ReasonNoStore, "there is no OpenFGA store to write the model to"}
	}
	if why := in.foreignStoreReason(obs, c.id); why != "" {
		return &conditionProblem{ReasonNotAdopted, in.notAdoptedMessage(c.id, why)}
	}
	return nil
}
