package derived

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
)

// A new API server may refuse reads for a moment; that removes no access.
func TestAKindIsNotFollowedOnceARefusalLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		docs := docKind().GroupResource
		o := &observed{
			names: map[event.GroupResource]string{}, scopes: map[event.GroupResource]scope{}, types: map[string]scope{},
			problems: map[event.GroupResource]string{}, forbidden: map[event.GroupResource]unreadable{}, told: newNews(),
			of: func(event.GroupResource) informer.Observation {
				return informer.Observation{Kind: "Doc", Observed: true}
			},
		}
		want := func(when string, followed bool, problem string) {
			t.Helper()
			if got := o.scopeOf(docType).followed; got != followed {
				t.Errorf("%s: followed is %v, want %v", when, got, followed)
			}
			if got := o.observationOf(docs).Problem; !strings.Contains(got, problem) || problem == "" && got != "" {
				t.Errorf("%s: the problem is %q, want %q", when, got, problem)
			}
		}
		o.storeObservation(docs)
		one := event.Change{Key: event.Key{GroupResource: docs, Name: "one"}}
		for range 2 { // What was allowed again begins anew.
			o.isForbidden(one, "you may not")
			want("at once", true, "")
			if len(o.dueForbidden()) > 0 {
				t.Error("it is read again at once")
			}
			<-time.After(refusalGrace - time.Second)
			if due := o.dueForbidden(); due[docs].Key != one.Key {
				t.Errorf("read again are %v", due)
			}
			o.isForbidden(one, "you may not")
			want("for a while", true, "")
			<-time.After(time.Second)
			o.isForbidden(one, "you may not")
			want("at last", false, "tuple-sync may not read it: you may not")
			o.allowKind(docs)
			want("when it is allowed", true, "")
		}
	})
}
