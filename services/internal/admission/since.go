package admission

import (
	"cmp"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// RegistrationDelay bounds the time until the API server uses a new registration. It is ten times the measured time
// (BenchmarkWebhookPropagation of implied-role).
const RegistrationDelay = time.Second

// enforcedSinceAnnotation records the time since which every matching request was checked. The annotation stays valid
// while no replica runs, because the API server then refuses all matching requests.
const enforcedSinceAnnotation = "entail.dev/in-force-since"

// recordedEnforcedSince returns the time in the annotation. It returns zero if the annotation is missing or not
// plausible, or if the registration differs from want. Parts that the service changes itself may differ.
func (s *Server) recordedEnforcedSince(
	registered *admissionregistrationv1.ValidatingWebhookConfiguration, want []admissionregistrationv1.ValidatingWebhook, soon time.Time,
) time.Time {
	at, err := time.Parse(time.RFC3339, registered.Annotations[enforcedSinceAnnotation])
	if err != nil || at.Before(registered.CreationTimestamp.Time) || at.After(soon) || len(registered.Webhooks) != len(want) {
		return time.Time{}
	}
	for i, w := range want {
		was := registered.Webhooks[i]
		// Another address does not matter: no server answers there, so requests were refused.
		was.ClientConfig = w.ClientConfig
		if s.options.Webhooks[i].Scope != nil {
			was.NamespaceSelector = w.NamespaceSelector
		}
		if s.options.Webhooks[i].RulesFunc != nil {
			was.Rules, was.MatchConditions = w.Rules, w.MatchConditions
		}
		if !equality.Semantic.DeepEqual(was, w) {
			return time.Time{}
		}
	}
	return at
}

// nextEffectiveTime returns the time from which the API server uses the current registration. It rounds up to whole
// seconds, because objects are dated in seconds: an earlier time would include objects that were not checked.
func (s *Server) nextEffectiveTime() (time.Time, error) {
	_, latest, err := s.clock.currentTimeBounds()
	return latest.Add(RegistrationDelay + time.Second - 1).Truncate(time.Second).UTC(), err
}

// EnforcedSince returns the time since which every request was checked, even while no replica ran. Older objects may
// not have been checked. It returns an error while the time is unknown or in the future.
func (s *Server) EnforcedSince() (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, _, err := s.clock.currentTimeBounds()
	switch {
	case s.enforcedSince.IsZero() || err != nil:
		return time.Time{}, fmt.Errorf("the webhooks are not in force: %w", cmp.Or(s.failure, err))
	case now.Before(s.enforcedSince):
		return time.Time{}, fmt.Errorf("the API server may not call the webhooks before %s", s.enforcedSince.Format(time.RFC3339))
	}
	return s.enforcedSince, nil
}
