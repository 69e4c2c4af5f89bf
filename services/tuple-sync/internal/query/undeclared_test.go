package query

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// openFGAWithTuples is an OpenFGA whose stores hold the given tuples, in pages of at most 100.
type openFGAWithTuples struct {
	OpenFGAClient
	tuples []corev1alpha1.Tuple
}

func (h openFGAWithTuples) ReadTuplePage(_ context.Context, storeID string, size int32, token string) (page []*openfgav1.Tuple, next string, err error) {
	from, _ := strconv.Atoi(strings.TrimPrefix(token, storeID+"@"))
	to := min(from+int(min(size, 100)), len(h.tuples))
	for _, t := range h.tuples[from:to] {
		page = append(page, &openfgav1.Tuple{Key: tuple.ParseDeclared(t).ToOpenFGA()})
	}
	if to < len(h.tuples) {
		next = fmt.Sprintf("%s@%d", storeID, to)
	}
	return page, next, nil
}

func TestListUndeclaredTuplesPages(t *testing.T) {
	s := newQueryFixture(t)
	s.store("a", corev1alpha1.StoreStatus{StoreID: "S1", AuthorizationModelID: "model", ManagedTuples: []corev1alpha1.Tuple{one}}, one)
	s.module("m", "a", []corev1alpha1.Tuple{one, two})
	held := []corev1alpha1.Tuple{one, two}
	for i := range 248 {
		held = append(held, corev1alpha1.Tuple{Object: fmt.Sprintf("doc:x%03d", i), Relation: "viewer", User: "user:1"})
	}
	for size, pages := range map[int32]int{0: 3, 120: 3, 1000: 1} {
		var got []string
		request, n := &tuplev1.ListUndeclaredTuplesRequest{Store: "a", PageSize: size}, 0
		for {
			page, err := s.server(openFGAWithTuples{tuples: held}).ListUndeclaredTuples(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range page.GetTuples() {
				got = append(got, fmt.Sprintf("%s %s %v", u.GetKey().GetObject(), strings.TrimPrefix(u.GetFate().String(), "FATE_"), u.GetRecordedBy()))
			}
			n++
			if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
				break
			}
		}
		if n != pages || len(got) != 249 || got[0] != "doc:2 TO_BE_REMOVED [AuthorizationModel/m]" || got[248] != "doc:x247 UNMANAGED []" {
			t.Errorf("size %d: %d tuples on %d pages: %.200q", size, len(got), n, got)
		}
	}
}

func TestListUndeclaredTuplesOfForceDeletedObject(t *testing.T) {
	s := newQueryFixture(t)
	s.module("m", "a", []corev1alpha1.Tuple{one}, one)
	s.remove("m")
	got, err := s.server(openFGAWithTuples{tuples: []corev1alpha1.Tuple{one}}).ListUndeclaredTuples(t.Context(), &tuplev1.ListUndeclaredTuplesRequest{Store: "a"})
	if err != nil || len(got.GetTuples()) != 1 || got.GetTuples()[0].GetFate() != tuplev1.Fate_FATE_TO_BE_REMOVED {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestPageTokenOfOtherStoreIsRefused(t *testing.T) {
	s := newQueryFixture(t)
	s.store("b", corev1alpha1.StoreStatus{StoreID: "S2", AuthorizationModelID: "model"})
	server := s.server(openFGAWithTuples{tuples: []corev1alpha1.Tuple{one, two}})
	page, err := server.ListUndeclaredTuples(t.Context(), &tuplev1.ListUndeclaredTuplesRequest{Store: "a", PageSize: 1})
	if err != nil || page.GetNextPageToken() == "" {
		t.Fatalf("got %v, %v", page, err)
	}
	s.store("c", corev1alpha1.StoreStatus{})
	ask := func(store string) error {
		_, err := server.ListUndeclaredTuples(t.Context(), &tuplev1.ListUndeclaredTuplesRequest{Store: store, PageToken: page.GetNextPageToken()})
		return err
	}
	refusals := map[string]connect.Code{"b": connect.CodeInvalidArgument, "c": connect.CodeNotFound, "none": connect.CodeNotFound}
	for store, want := range refusals {
		if err := ask(store); connect.CodeOf(err) != want {
			t.Errorf("%s: %v", store, err)
		}
	}
	s.store("a", corev1alpha1.StoreStatus{StoreID: "S3", AuthorizationModelID: "model"})
	if err := ask("a"); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("with another OpenFGA store: %v", err)
	}
	_, err = server.ListTuples(t.Context(), &tuplev1.ListTuplesRequest{Store: "a", PageToken: page.GetNextPageToken()})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("of another list: %v", err)
	}
}

// unresponsiveOpenFGA is an OpenFGA that does not answer.
type unresponsiveOpenFGA struct{ OpenFGAClient }

func (unresponsiveOpenFGA) ReadTuplePage(context.Context, string, int32, string) ([]*openfgav1.Tuple, string, error) {
	return nil, "", fault.Unavailable(context.DeadlineExceeded)
}

func TestOutageIsNotEmptyList(t *testing.T) {
	_, err := newQueryFixture(t, one).server(unresponsiveOpenFGA{}).ListUndeclaredTuples(t.Context(), &tuplev1.ListUndeclaredTuplesRequest{Store: "a"})
	if !fault.IsUnavailable(err) {
		t.Errorf("got %v", err)
	}
}
