package rpc

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/internal/event"
)

// tickingService streams a number of messages, with pauses between them.
type tickingService struct {
	inferencev1connect.UnimplementedInferenceServiceHandler
	count int
	pause time.Duration
	// right is an additional right that a caller needs, if it is set.
	right RequiredRight
}

func (k tickingService) WatchInferences(ctx context.Context, r *inferencev1.WatchInferencesRequest, stream *connect.ServerStream[inferencev1.WatchInferencesResponse]) error {
	if k.right.Verb != "" {
		if err := CheckRight(ctx, k.right); err != nil {
			return err
		}
	}
	for range k.count {
		if err := stream.Send(&inferencev1.WatchInferencesResponse{Revision: r.GetNamespace()}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(k.pause):
		}
	}
	return nil
}

func (k tickingService) handler() Handler {
	rules := event.GroupResource{Group: "role.k8s.com", Resource: "impliedroles"}
	access := map[string]AccessRule{}
	methods := inferencev1.File_entail_inference_v1_inference_proto.Services().ByName("InferenceService").Methods()
	for i := range methods.Len() {
		access["/"+inferencev1connect.InferenceServiceName+"/"+string(methods.Get(i).Name())] = RequireVerb("list", rules)
	}
	access[inferencev1connect.InferenceServiceWatchInferencesProcedure] = RequireVerbInNamespace("list", rules, (*inferencev1.WatchInferencesRequest).GetNamespace)
	return NewHandler[inferencev1connect.InferenceServiceHandler](
		inferencev1connect.InferenceServiceName, inferencev1connect.NewInferenceServiceHandler, k, access)
}

func TestStreamOutlivesWriteTimeout(t *testing.T) {
	const answerTime, messages = time.Second, 10
	h := tickingService{count: messages, pause: answerTime / 4}.handler()
	path, handler := h.mount()
	mux := http.NewServeMux()
	mux.Handle(path, extendStreamDeadlines(handler, h.streamProcedures()))
	server := httptest.NewUnstartedServer(mux)
	server.Config.ReadTimeout, server.Config.WriteTimeout = answerTime, answerTime
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	h2c := &http.Transport{Protocols: new(http.Protocols)}
	h2c.Protocols.SetUnencryptedHTTP2(true)
	defer h2c.CloseIdleConnections()
	for name, client := range map[string]*http.Client{"HTTP/1.1": server.Client(), "HTTP/2": {Transport: h2c}} {
		stream, err := inferencev1connect.NewInferenceServiceClient(client, server.URL).
			WatchInferences(t.Context(), &inferencev1.WatchInferencesRequest{Namespace: "team"})
		if err != nil {
			t.Fatal(err)
		}
		received := 0
		for stream.Receive() {
			received++
		}
		if received != messages || stream.Err() != nil {
			t.Errorf("over %s: %d messages, %v", name, received, stream.Err())
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStreamProceduresComeFromDescriptors(t *testing.T) {
	streams := tickingService{}.handler().streamProcedures()
	if _, ok := streams[inferencev1connect.InferenceServiceWatchInferencesProcedure]; !ok || len(streams) != 1 {
		t.Errorf("streams %v", streams)
	}
	if got := (Handler{service: string(protoreflect.FullName("no.Service"))}).streamProcedures(); len(got) != 0 {
		t.Errorf("streams of no service: %v", got)
	}
}
