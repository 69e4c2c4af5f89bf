package rpc

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "github.com/entail-dev/entail/gen/entail/inference/v1"
	_ "github.com/entail-dev/entail/gen/entail/policy/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	_ "github.com/entail-dev/entail/gen/entail/sync/v1"
	_ "github.com/entail-dev/entail/gen/entail/tuple/v1"
)

func TestReadProceduresAreMarkedNoSideEffects(t *testing.T) {
	changing, seen := []string{"DiscardDeadLetter", "Replay", "Resume"}, 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				method := methods.Get(j)
				if !strings.HasPrefix(string(method.FullName()), "entail.") || method.IsStreamingServer() {
					continue
				}
				seen++
				options, _ := method.Options().(*descriptorpb.MethodOptions)
				reads := options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
				if reads == slices.Contains(changing, string(method.Name())) {
					t.Errorf("%s: got NO_SIDE_EFFECTS %v", method.FullName(), reads)
				}
			}
		}
		return true
	})
	if seen < 30 {
		t.Errorf("got only %d methods", seen)
	}
}

func TestReadProceduresAcceptGET(t *testing.T) {
	tr := serve(t, nil, fakeStoreService{}.handler())
	question := url.Values{"connect": {"v1"}, "encoding": {"json"}, "message": {`{"name":"demo"}`}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tr.url+storev1connect.StoreServiceGetStoreProcedure+"?"+question.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := tr.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), `"demo"`) {
		t.Errorf("%d %s, %v", response.StatusCode, text, err)
	}
}
