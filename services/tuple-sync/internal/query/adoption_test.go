package query

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/tuple-sync/derived"
)

// fakePreviewer is an IAM with a fixed answer.
type fakePreviewer struct {
	is  derived.AdoptionPreview
	err error
}

func (p fakePreviewer) PreviewAdoption(context.Context) (derived.AdoptionPreview, error) {
	return p.is, p.err
}

func TestPreviewAdoptionPages(t *testing.T) {
	w := newQueryFixture(t)
	held := []corev1alpha1.Tuple{
		one, {Object: "a.example/Thing:1", Relation: "owner", User: "a.example/User:1"}, two, {Object: "a.example/Thing:2", Relation: "owner", User: "a.example/User:1"},
	}
	ask := func(iam fakePreviewer, store string, r *tuplev1.PreviewAdoptionRequest) (*tuplev1.PreviewAdoptionResponse, error) {
		s := w.server(openFGAWithTuples{tuples: held})
		s.cfg.IAM, s.cfg.IAMStore = iam, store
		return s.PreviewAdoption(t.Context(), r)
	}
	refused := fakePreviewer{is: derived.AdoptionPreview{StoreID: "S1", Message: "it is another's"}}
	r := &tuplev1.PreviewAdoptionRequest{PageSize: 2}
	var objects []string
	for pages := 0; ; pages++ {
		page, err := ask(refused, "a", r)
		if err != nil || page.GetStore() != "a" || page.GetStoreId() != "S1" || page.GetAdopted() || page.GetMessage() == "" {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, goes := range page.GetTuples() {
			objects = append(objects, goes.GetKey().GetObject())
		}
		if r.PageToken = page.GetNextPageToken(); r.GetPageToken() == "" {
			break
		}
	}
	if len(objects) != 2 || objects[0] != "a.example/Thing:1" || objects[1] != "a.example/Thing:2" {
		t.Errorf("there go %v", objects)
	}
	for code, wrong := range map[connect.Code]func() error{
		connect.CodeNotFound: func() error { _, err := ask(refused, "none", &tuplev1.PreviewAdoptionRequest{}); return err },
		connect.CodeInvalidArgument: func() error {
			_, err := ask(refused, "a", &tuplev1.PreviewAdoptionRequest{PageToken: "x.y"})
			return err
		},
	} {
		if err := wrong(); connect.CodeOf(err) != code {
			t.Errorf("%v, want %v", err, code)
		}
	}
	if _, err := ask(fakePreviewer{}, "a", &tuplev1.PreviewAdoptionRequest{}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("without a store: %v", err)
	}
	trouble := errors.New("trouble")
	if _, err := ask(fakePreviewer{err: trouble}, "a", &tuplev1.PreviewAdoptionRequest{}); !errors.Is(err, trouble) {
		t.Errorf("in trouble: %v", err)
	}
}
