package plan

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/clip"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/store-sync/model"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

// Reasons of the condition ModelSynced; Forbidden is one of StoreSynced.
const (
	ReasonMerged          = "Merged"
	ReasonModulesRejected = "ModulesRejected"
	ReasonInvalidCore     = "InvalidCore"
	ReasonLimitExceeded   = "LimitExceeded"
	ReasonModelRefused    = "ModelRefused"
	ReasonNoStore         = "NoStore"
	ReasonForbidden       = "Forbidden"
	reasonWriting         = "Writing"
)

// maxModules bounds the modules that a Store's status lists, maxMessage what it says of each, in bytes.
const maxModules, maxMessage = 200, 1024

// storeConditions are the types that store-sync writes to a Store.
func storeConditions() []string {
	return []string{
		corev1alpha1.StoreSynced, corev1alpha1.ModelSynced, corev1alpha1.ModulesInSync, corev1alpha1.NameUnique,
		corev1alpha1.NameInSync, corev1alpha1.Deleting,
	}
}

// OwnStoreStatus is the part of a Store's status that store-sync writes.
func OwnStoreStatus(s corev1alpha1.StoreStatus) corev1alpha1.StoreStatus {
	return corev1alpha1.StoreStatus{
		StoreID: s.StoreID, AuthorizationModelID: s.AuthorizationModelID, ModelDigest: s.ModelDigest, Modules: s.Modules, Live: s.Live,
		Conditions: condition.Apply(s.Conditions, storeConditions(), 0, metav1.Time{}),
	}
}

// StoreStatus is that part as it should be now. In the middle of a pass, what is not known yet stays as it was.
func StoreStatus(in Input, obs Observed) corev1alpha1.StoreStatus {
	s := OwnStoreStatus(in.Store.Status)
	types, set := storeConditions(), []condition.Condition{}
	switch {
	case obs.Forbidden != nil:
		set = forbidden(obs.Forbidden)
		types = []string{corev1alpha1.StoreSynced}
	case in.deleting():
		if why, waiting := blockedBy(in); waiting {
			set = append(set, why)
		}
	default:
		c := chooseStore(in, obs)
		s.StoreID, s.AuthorizationModelID, s.ModelDigest, s.Modules = c.id, in.modelID(obs, c.id), "", modules(in, c)
		if modelProblem(in, obs, c) == nil {
			s.Live = in.nextLiveCore()
		}
		types, set = nil, conditions(in, obs, c)
		for _, found := range set {
			if types = append(types, found.Type); found.Type == corev1alpha1.ModelSynced && found.Holds() {
				s.ModelDigest = in.Store.ModelDigest()
			}
		}
	}
	s.Conditions = condition.Apply(s.Conditions, types, in.Store.Generation, in.Now, set...)
	return s
}

// forbidden are the conditions of a Store that we may not change.
func forbidden(why error) []condition.Condition {
	message := clip.Line("the API server does not let store-sync change this object, which is tried again: "+why.Error(), maxMessage)
	return []condition.Condition{condition.New(corev1alpha1.StoreSynced, false, ReasonForbidden, message)}
}

// conditions are those of a Store that is to live.
func conditions(in Input, obs Observed, c storeChoice) []condition.Condition {
	set := []condition.Condition{storeSynced(in, obs, c), modelSynced(in, obs, c), modulesInSync(in, c)}
	if c.id == "" {
		return set
	}
	for _, check := range []func(Input, Observed, string) (condition.Condition, bool){nameUnique, nameInSync} {
		if found, ok := check(in, obs, c.id); ok {
			set = append(set, found)
		}
	}
	return set
}

// before is what the Store's status says already. Neither a store's name nor its namesakes
// depend on the spec, so that this is true of the present generation, too.
func before(in Input, typ string) (condition.Condition, bool) {
	if c := meta.FindStatusCondition(in.Store.Status.Conditions, typ); c != nil {
		return known(c), true
	}
	return condition.Condition{}, false
}

// modelID is the model that is live in the store.
func (in Input) modelID(obs Observed, id string) string {
	latest, known := obs.latest(id)
	switch {
	case id == "":
		return ""
	case known:
		return latest.GetId()
	case id == in.recorded():
		return in.Store.Status.AuthorizationModelID
	}
	return ""
}

// live reports whether the store's newest model is known to be the merge.
func live(in Input, obs Observed, id string) bool {
	latest, known := obs.latest(id)
	return known && in.mergeErr() == nil && model.Equal(latest, in.Merged.Model)
}

func modelSynced(in Input, obs Observed, c storeChoice) condition.Condition {
	id := in.modelID(obs, c.id)
	is := func(holds bool, reason, message string) condition.Condition {
		return condition.New(corev1alpha1.ModelSynced, holds, reason, message)
	}
	if p := modelProblem(in, obs, c); p != nil {
		if id != "" {
			p.message += "; model " + id + ", the last good one, stays live"
		}
		return is(false, p.reason, p.message)
	}
	if !live(in, obs, c.id) {
		return is(false, reasonWriting, "the model is being written")
	}
	if core := in.core(); core.State == model.LastGoodLive {
		reason := ReasonInvalidCore
		if core.Exceeds {
			reason = ReasonLimitExceeded
		}
		return is(false, reason, fmt.Sprintf("spec.coreModule: %s; model %s is live, with the core module of generation %d and everybody else's: %s",
			core.Message, id, in.Store.Status.Live.Generation, unrevoked(core)))
	}
	left := in.in(model.LastGoodLive, model.Rejected)
	merged := len(in.Merged.Reports) - len(left)
	if len(left) == 0 {
		return is(true, ReasonMerged, fmt.Sprintf("model %s holds all %d modules", id, merged))
	}
	return is(true, ReasonModulesRejected, fmt.Sprintf("model %s holds %d of %d modules; rejected: %s (status.modules says why)",
		id, merged, merged+len(left), enumerate(left)))
}

// modelProblem is why the merge of this generation cannot be live.
func modelProblem(in Input, obs Observed, c storeChoice) *problem {
	err := in.mergeErr()
	switch core, tooLarge := (*model.CoreError)(nil), (*model.LimitError)(nil); {
	case errors.As(err, &core):
		return &problem{ReasonInvalidCore, "spec.coreModule: " + core.Message}
	case errors.Is(err, errNoTypes):
		return &problem{ReasonInvalidCore, "spec.coreModule: " + err.Error()}
	case errors.As(err, &tooLarge):
		return &problem{ReasonLimitExceeded, tooLarge.Error()}
	case err != nil:
		return &problem{ReasonModelRefused, err.Error()}
	case obs.Refused != nil:
		return &problem{ReasonModelRefused, obs.Refused.Error()}
	case c.problem != nil:
		return &problem{ReasonNoStore, "there is no OpenFGA store to write the model to"}
	}
	return nil
}

// in lists the sources of the modules that are in some state.
func (in Input) in(states ...model.State) []string {
	var sources []string
	for _, r := range in.Merged.Reports {
		if slices.Contains(states, r.State) {
			sources = append(sources, source(in, r.Origin))
		}
	}
	return sources
}

// further is where more is said of modules that are not live as they are.
const further = "; what edits of these that cannot be read remove from the model has not been removed: " +
	"status.modules and their own conditions say why, and how to revoke now"

// modulesInSync counts what is not live as its object has it.
func modulesInSync(in Input, c storeChoice) condition.Condition {
	is := func(holds bool, reason, format string, args ...any) condition.Condition {
		return condition.New(corev1alpha1.ModulesInSync, holds, reason, fmt.Sprintf(format, args...))
	}
	kept, left, all := in.in(model.LastGoodLive), in.in(model.Rejected), len(in.Merged.Reports)
	switch {
	case c.problem != nil:
		return is(false, ReasonNoStore, "there is no OpenFGA store to write the modules to")
	case len(left) > 0:
		return is(false, moduleplan.ReasonRejected, "of %d modules %d are rejected (%s), and of %d the last live text stays%s",
			all, len(left), enumerate(left), len(kept), further)
	case len(kept) > 0:
		return is(false, corev1alpha1.LastGoodLive, "of %d modules the last live text stays of %d: %s%s", all, len(kept), enumerate(kept), further)
	default:
		return is(true, "AllLive", "all %d modules are live", all)
	}
}

// modules is the list in a Store's status. Without an OpenFGA store nothing is merged.
func modules(in Input, c storeChoice) []corev1alpha1.ModuleStatus {
	if c.problem != nil {
		return nil
	}
	reports := in.Merged.Reports[:min(len(in.Merged.Reports), maxModules)]
	list := make([]corev1alpha1.ModuleStatus, len(reports))
	for i, r := range reports {
		list[i] = corev1alpha1.ModuleStatus{
			Name: r.Module, Source: source(in, r.Origin), State: corev1alpha1.ModuleState(r.State), Message: clip.Text(r.Message, maxMessage),
		}
	}
	return list
}

// source is where a person finds the module.
func source(in Input, o model.Origin) string {
	if o.Kind == model.Core {
		return "store/" + in.Key.Name
	}
	return o.String()
}
