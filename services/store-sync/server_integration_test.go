//go:build integration

package storesync_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func clientOf(r *testenv.RunningService) storev1connect.StoreServiceClient {
	transport := &http.Transport{DisableKeepAlives: true}
	return storev1connect.NewStoreServiceClient(&http.Client{Transport: transport}, r.URL)
}

func TestStoreServiceReturnsStoresAndModels(t *testing.T) {
	b := newTestEnv(t)
	stores := clientOf(b.serve())
	testenv.Eventually(t, soon, func() error {
		if _, err := stores.ListStores(t.Context(), &storev1.ListStoresRequest{}); connect.CodeOf(err) != connect.CodeUnavailable {
			return fmt.Errorf("before the snapshot ListStores answers %w, want Unavailable", err)
		}
		return nil
	})
	for i := range 5 {
		b.applyStore(fmt.Sprintf("demo-%d", i))
	}
	b.applyModule("docs", "demo-0", dsl("folder"))
	b.applyModule("odd", "demo-0", "nonsense")
	b.applyStore("bad", func(s *corev1alpha1.StoreSpec) { s.CoreModule = "" })
	b.StartReflector()
	b.awaitModule("docs", "Merged=True/Merged")
	b.awaitModule("odd", "Merged=False/Rejected")
	b.await("bad", "ModelSynced=False/InvalidCore")
	b.AwaitNoCalls()

	var names []string
	token := ""
	for {
		page, err := stores.ListStores(t.Context(), &storev1.ListStoresRequest{PageSize: 4, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.GetStores() {
			names = append(names, s.GetName())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if want := []string{"bad", "demo-0", "demo-1", "demo-2", "demo-3", "demo-4"}; !slices.Equal(names, want) {
		t.Errorf("listed %v, want %v", names, want)
	}
	expectStore(t, b, stores)
	expectModel(t, b, stores)
}

func expectStore(t *testing.T, b *testEnv, stores storev1connect.StoreServiceClient) {
	t.Helper()
	got, err := stores.GetStore(t.Context(), &storev1.GetStoreRequest{Name: "demo-0"})
	if err != nil {
		t.Fatal(err)
	}
	s, status := got.GetStore(), b.store("demo-0").Status
	if s.GetStoreId() != status.StoreID || s.GetAuthorizationModelId() != status.AuthorizationModelID || s.GetReady() || s.GetGeneration() != 1 {
		t.Errorf("GetStore answers %v, the status is %+v", s, status)
	}
	if m := s.GetModules(); len(m) != 3 || m[1].GetState() != "Merged" || m[2].GetState() != "Rejected" || m[2].GetMessage() == "" {
		t.Errorf("modules are %v", m)
	}
	if _, err := stores.GetStore(t.Context(), &storev1.GetStoreRequest{Name: "nobody"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("an unknown Store is answered by %v", err)
	}
	if _, err := stores.GetStore(t.Context(), &storev1.GetStoreRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a request without a name is answered by %v", err)
	}
	if _, err := stores.ListStores(t.Context(), &storev1.ListStoresRequest{PageToken: "nonsense"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("an invented page token is answered by %v", err)
	}
}

func expectModel(t *testing.T, b *testEnv, stores storev1connect.StoreServiceClient) {
	t.Helper()
	got, err := stores.GetModel(t.Context(), &storev1.GetModelRequest{Name: "demo-0"})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetAuthorizationModelId() != b.store("demo-0").Status.AuthorizationModelID || len(got.GetModules()) != 3 {
		t.Errorf("GetModel answers %v", got)
	}
	for _, part := range []string{"type folder", "define reader: [user]"} {
		if !strings.Contains(got.GetDsl(), part) {
			t.Errorf("the DSL lacks %q:\n%s", part, got.GetDsl())
		}
	}
	if !strings.Contains(got.GetJson(), `"folder"`) {
		t.Errorf("the JSON lacks the type folder: %s", got.GetJson())
	}
	_, err = stores.GetModel(t.Context(), &storev1.GetModelRequest{Name: "bad"})
	if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "empty") {
		t.Errorf("a Store without a model is answered by %v", err)
	}
	b.OpenFGA.Stop()
	if _, err := stores.GetModel(t.Context(), &storev1.GetModelRequest{Name: "demo-0"}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("without OpenFGA GetModel answers %v", err)
	}
	testenv.Eventually(t, soon, func() error {
		_, err := stores.GetStore(t.Context(), &storev1.GetStoreRequest{Name: "demo-0"})
		return err
	})
}
