package rpc

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
)

func (fakeStoreService) PreviewModel(context.Context, *storev1.PreviewModelRequest) (*storev1.PreviewModelResponse, error) {
	return &storev1.PreviewModelResponse{}, nil
}

// post sends a request as curl does.
func (tr *runningServer) post(t *testing.T, procedure, contentType, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tr.url+procedure, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := tr.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestStrictCodecNamesUnknownField(t *testing.T) {
	tr := serve(t, nil, fakeStoreService{}.handler())
	for _, contentType := range []string{"application/json", "application/json; charset=utf-8"} {
		status, answer := tr.post(t, storev1connect.StoreServiceListStoresProcedure, contentType, `{"namespaces":"seed"}`)
		if status != http.StatusBadRequest || !strings.Contains(answer, `unknown field \"namespaces\"`) || !strings.Contains(answer, "invalid_argument") {
			t.Errorf("%s: %d %s", contentType, status, answer)
		}
		if status, answer = tr.post(t, storev1connect.StoreServiceListStoresProcedure, contentType, `{"pageSize":1}`); status != http.StatusOK {
			t.Errorf("%s of a known field: %d %s", contentType, status, answer)
		}
	}
}

func TestStrictCodecRefusesUnknownFieldNumber(t *testing.T) {
	tr := serve(t, nil, fakeStoreService{}.handler())
	for name, option := range map[string]connect.ClientOption{"Connect": connect.WithClientOptions(), "gRPC-Web": connect.WithGRPCWeb()} {
		request := &storev1.GetStoreRequest{Name: "demo"}
		request.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
		_, err := storev1connect.NewStoreServiceClient(tr.client, tr.url, option).GetStore(t.Context(), request)
		if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "unknown field 99 at (entail.store.v1.GetStoreRequest)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 98, protowire.VarintType), 1)
	data := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), inner)
	if err := (strictProtoCodec{}).Unmarshal(data, &inferencev1.ListInferencesRequest{}); err == nil || !strings.Contains(err.Error(), "unknown field 98 at (entail.inference.v1.ListInferencesRequest).parent") {
		t.Errorf("in a message of a message: %v", err)
	}
}

func TestJSONAnswerIncludesFalse(t *testing.T) {
	tr := serve(t, nil, fakeStoreService{}.handler())
	status, answer := tr.post(t, storev1connect.StoreServicePreviewModelProcedure, "application/json", `{"name":"demo","module":"module x"}`)
	if status != http.StatusOK || !strings.Contains(strings.ReplaceAll(answer, " ", ""), `"accepted":false`) {
		t.Errorf("%d %s", status, answer)
	}
}
