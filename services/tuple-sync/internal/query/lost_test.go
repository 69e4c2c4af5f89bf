package query

import (
	"slices"
	"testing"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/tuple-sync/derived"
)

func TestListLostBindingsHasPagesOfNamespace(t *testing.T) {
	lost := func(namespace, name, field string) derived.LostReference {
		return derived.LostReference{Binding: event.Key{Namespace: namespace, Name: name}, Kind: "PolicyBinding", Field: field, Object: "User/bob", UID: "u", Reason: "NotFound"}
	}
	s := New(Config{Complete: func() error { return nil }, LostReferences: func() ([]derived.LostReference, []string) {
		return []derived.LostReference{lost("a", "x", "spec.subjects[0]"), lost("b", "x", "spec.subjects[0]"), lost("a", "x", "spec.subjects[1]")}, []string{"pods"}
	}})
	var got []string
	request := &tuplev1.ListLostBindingsRequest{Namespace: "a", PageSize: 1}
	for {
		page, err := s.ListLostBindings(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.GetReferences() {
			got = append(got, r.GetNamespace()+"/"+r.GetName()+" "+r.GetField()+" "+r.GetObject()+" "+r.GetUid()+" "+r.GetReason())
		}
		if page.GetTotal() != 2 || !slices.Equal(page.GetNotChecked(), []string{"pods"}) {
			t.Errorf("got %v, want 2 in all and pods not checked", page)
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
	}
	if want := []string{"a/x spec.subjects[0] User/bob u NotFound", "a/x spec.subjects[1] User/bob u NotFound"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
