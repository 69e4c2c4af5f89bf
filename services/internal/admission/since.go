package admission

import (
	"cmp"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Settling is how long the API server may take to learn what it is to ask about: ten times what it takes
// (BenchmarkLearning of implied-role).
const Settling = time.Second

// sinceAnnotation is where the configuration says since when all has been judged that its webhooks are
// about. It outlives services: while none runs, all of that is refused.
const sinceAnnotation = "entail.dev/in-force-since"

// since is what a configuration says of that; zero if it says nothing that can be before soon, or if it
// was away or somebody changed what is asked about.
func (s *Server) since(
	is *admissionregistrationv1.ValidatingWebhookConfiguration, want []admissionregistrationv1.ValidatingWebhook, soon time.Time,
) time.Time {
	at, err := time.Parse(time.RFC3339, is.Annotations[sinceAnnotation])
	if err != nil || at.Before(is.CreationTimestamp.Time) || at.After(soon) || len(is.Webhooks) != len(want) {
		return time.Time{}
	}
	for i, w := range want {
		was := is.Webhooks[i]
		was.ClientConfig = w.ClientConfig // Others find nobody there.
		if s.options.Webhooks[i].Scope != nil {
			was.NamespaceSelector = w.NamespaceSelector
		}
		if s.options.Webhooks[i].About != nil {
			was.Rules, was.MatchConditions = w.Rules, w.MatchConditions
		}
		if !equality.Semantic.DeepEqual(was, w) {
			return time.Time{}
		}
	}
	return at
}

// soon is when the API server will know what is registered now, in whole seconds, as it dates objects:
// too early would be to say of somebody that they were judged who were not.
func (s *Server) soon() (time.Time, error) {
	_, latest, err := s.clock.now()
	return latest.Add(Settling + time.Second - 1).Truncate(time.Second).UTC(), err
}

// Since is since when nothing has passed that was not judged, whichever replica ran, or none: what is
// older may have. It is an error while that is not known, or still to come.
func (s *Server) Since() (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, _, err := s.clock.now()
	switch {
	case s.inForce.IsZero() || err != nil:
		return time.Time{}, fmt.Errorf("the webhooks are not in force: %w", cmp.Or(s.failure, err))
	case now.Before(s.inForce):
		return time.Time{}, fmt.Errorf("the API server is about to learn of the webhooks, until %s", s.inForce.Format(time.RFC3339))
	}
	return s.inForce, nil
}
