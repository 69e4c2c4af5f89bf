// Package httpapi carries the calls of a gRPC client of OpenFGA over the HTTP API, which is what
// hosted servers have. Requests, answers and codes are those of gRPC, so that nobody above knows.
package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	sdk "github.com/openfga/go-sdk"
	"github.com/openfga/go-sdk/telemetry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// API is the HTTP API of a server.
type API struct {
	calls sdk.OpenFgaApi
}

// New makes one. What else a request needs, such as a token, is the transport's to add.
func New(url string, transport http.RoundTripper) (*API, error) {
	cfg, err := sdk.NewConfiguration(sdk.Configuration{
		ApiUrl: url, UserAgent: "entail",
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: stay},
		// Whoever calls tries again, and waits by a context.
		RetryParams: &sdk.RetryParams{MaxRetry: 0, MinWaitInMs: 1},
		Telemetry:   &telemetry.Configuration{Metrics: &telemetry.MetricsConfiguration{}},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing calls to OpenFGA: %w", err)
	}
	return &API{calls: sdk.NewAPIClient(cfg).OpenFgaApi}, nil
}

// stay follows no redirect: what the transport adds is meant for one server.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// answer is what the server said.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// Interceptor makes calls over HTTP. It is the last of its chain.
func (a *API) Interceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, _ string, request, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		if err := addressed(request); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		got, err := a.send(ctx, request)
		switch {
		case err != nil:
			return unanswered(ctx, err)
		case got.code >= http.StatusMultipleChoices:
			return got.refusal()
		}
		return got.receive(reply)
	}
}

// addressed refuses ids that cannot be part of a path. Of the rest, the server says what is wrong.
func addressed(request any) error {
	if r, ok := request.(*openfgav1.ReadAuthorizationModelRequest); ok {
		return r.Validate()
	}
	if r, ok := request.(interface{ GetStoreId() string }); ok {
		return (&openfgav1.GetStoreRequest{StoreId: r.GetStoreId()}).Validate()
	}
	return nil
}

// receive fills the reply in. What says nothing of what was asked for is no answer: taken for one, it would
// mean that there is nothing.
func (a answer) receive(reply any) error {
	message, ok := reply.(proto.Message)
	if !ok || message.ProtoReflect().Descriptor().Fields().Len() == 0 {
		return nil
	}
	if !a.tells(message) || (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(a.body, message) != nil {
		return status.Error(codes.Unavailable, "what answers is no OpenFGA: its answer cannot be read")
	}
	return nil
}

// tells reports whether the body has any field of a message: OpenFGA leaves none out.
func (a answer) tells(message proto.Message) bool {
	var said map[string]json.RawMessage
	if json.Unmarshal(a.body, &said) != nil {
		return false
	}
	for name := range said {
		if message.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name)) != nil {
			return true
		}
	}
	return false
}

// send makes the call that a request is for. An error means that the server did not answer.
func (a *API) send(ctx context.Context, request any) (answer, error) {
	switch r := request.(type) {
	case *openfgav1.ListStoresRequest:
		call := a.calls.ListStores(ctx).ContinuationToken(r.GetContinuationToken()).Name(r.GetName())
		if r.GetPageSize() != nil {
			call = call.PageSize(r.GetPageSize().GetValue())
		}
		return answered(call.Execute())
	case *openfgav1.CreateStoreRequest:
		return with(r, a.calls.CreateStore(ctx).Body)
	case *openfgav1.GetStoreRequest:
		return answered(a.calls.GetStore(ctx, r.GetStoreId()).Execute())
	case *openfgav1.DeleteStoreRequest:
		response, err := a.calls.DeleteStore(ctx, r.GetStoreId()).Execute()
		return answered(nil, response, err)
	case *openfgav1.ReadAuthorizationModelsRequest:
		call := a.calls.ReadAuthorizationModels(ctx, r.GetStoreId()).ContinuationToken(r.GetContinuationToken())
		if r.GetPageSize() != nil {
			call = call.PageSize(r.GetPageSize().GetValue())
		}
		return answered(call.Execute())
	case *openfgav1.ReadAuthorizationModelRequest:
		return answered(a.calls.ReadAuthorizationModel(ctx, r.GetStoreId(), r.GetId()).Execute())
	case *openfgav1.WriteAuthorizationModelRequest:
		return with(r, a.calls.WriteAuthorizationModel(ctx, r.GetStoreId()).Body)
	case *openfgav1.WriteRequest:
		return with(r, a.calls.Write(ctx, r.GetStoreId()).Body)
	case *openfgav1.ReadRequest:
		return with(r, a.calls.Read(ctx, r.GetStoreId()).Body)
	case *openfgav1.ReadChangesRequest:
		call := a.calls.ReadChanges(ctx, r.GetStoreId()).ContinuationToken(r.GetContinuationToken())
		if r.GetPageSize() != nil {
			call = call.PageSize(r.GetPageSize().GetValue())
		}
		if r.GetType() != "" {
			call = call.Type_(r.GetType())
		}
		if r.GetStartTime() != nil {
			call = call.StartTime(r.GetStartTime().AsTime())
		}
		return answered(call.Execute())
	case *openfgav1.CheckRequest:
		return with(r, a.calls.Check(ctx, r.GetStoreId()).Body)
	case *openfgav1.ListObjectsRequest:
		return with(r, a.calls.ListObjects(ctx, r.GetStoreId()).Body)
	case *openfgav1.ExpandRequest:
		return with(r, a.calls.Expand(ctx, r.GetStoreId()).Body)
	default:
		return answer{}, status.Error(codes.Unimplemented, "the HTTP API has no such call")
	}
}

// execution is a call that is ready to be made.
type execution[Reply any] interface {
	Execute() (Reply, *http.Response, error)
}

// with makes a call whose body is the request, but for the store, which is in the path. What the body
// has no place for is refused: left out, it would change what is asked for.
func with[Body, Reply any, Call execution[Reply]](request proto.Message, call func(Body) Call) (answer, error) {
	message := proto.CloneOf(request).ProtoReflect()
	if store := message.Descriptor().Fields().ByName("store_id"); store != nil {
		message.Clear(store)
	}
	text, err := protojson.Marshal(message.Interface())
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var body Body
	if err == nil {
		err = decoder.Decode(&body)
	}
	if err != nil {
		return answer{}, status.Error(codes.InvalidArgument, err.Error())
	}
	return answered(call(body).Execute())
}

// answered takes what a call returned. The server answered if there is a response, whatever it says; a good
// one must have come to its end.
func answered(_ any, response *http.Response, err error) (answer, error) {
	if response == nil || response.StatusCode < http.StatusMultipleChoices && err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(response.Body)
	return answer{code: response.StatusCode, header: response.Header, body: body}, err
}
