// Package httpapi sends the calls of an OpenFGA gRPC client over the HTTP API, which hosted servers offer. Requests,
// answers and error codes are those of gRPC, so callers need not distinguish the two.
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

// API is the HTTP API of one server.
type API struct {
	calls sdk.OpenFgaApi
}

// New returns an API. The transport must add everything else that a request needs, such as a token.
func New(url string, transport http.RoundTripper) (*API, error) {
	cfg, err := sdk.NewConfiguration(sdk.Configuration{
		ApiUrl: url, UserAgent: "entail",
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: refuseRedirect},
		// The caller retries and bounds the wait by a context.
		RetryParams: &sdk.RetryParams{MaxRetry: 0, MinWaitInMs: 1},
		Telemetry:   &telemetry.Configuration{Metrics: &telemetry.MetricsConfiguration{}},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing calls to OpenFGA: %w", err)
	}
	return &API{calls: sdk.NewAPIClient(cfg).OpenFgaApi}, nil
}

// refuseRedirect prevents redirects, because headers of the transport, such as the token, are only for this server.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// httpResponse holds an HTTP response.
type httpResponse struct {
	code   int
	header http.Header
	body   []byte
}

// Interceptor returns an interceptor that makes calls over HTTP. It must be the last of its chain.
func (a *API) Interceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, _ string, request, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		if err := checkPathIDs(request); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		got, err := a.sendRequest(ctx, request)
		switch {
		case err != nil:
			return unansweredError(ctx, err)
		case got.code >= http.StatusMultipleChoices:
			return got.refusalErr()
		}
		return got.decodeReply(reply)
	}
}

// checkPathIDs returns an error for ids that cannot be part of a path. The server validates everything else.
func checkPathIDs(request any) error {
	if r, ok := request.(*openfgav1.ReadAuthorizationModelRequest); ok {
		return r.Validate()
	}
	if r, ok := request.(interface{ GetStoreId() string }); ok {
		return (&openfgav1.GetStoreRequest{StoreId: r.GetStoreId()}).Validate()
	}
	return nil
}

// decodeReply decodes the answer into reply. A body without any expected field is an error: otherwise it would be an empty
// result.
func (a httpResponse) decodeReply(reply any) error {
	message, ok := reply.(proto.Message)
	if !ok || message.ProtoReflect().Descriptor().Fields().Len() == 0 {
		return nil
	}
	if !a.hasAnyField(message) || (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(a.body, message) != nil {
		return status.Error(codes.Unavailable, "the server is not OpenFGA: its answer cannot be read")
	}
	return nil
}

// hasAnyField reports whether the body has any field of a message. OpenFGA omits no field.
func (a httpResponse) hasAnyField(message proto.Message) bool {
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

// sendRequest makes the call for a request. An error means that no server answered.
func (a *API) sendRequest(ctx context.Context, request any) (httpResponse, error) {
	switch r := request.(type) {
	case *openfgav1.ListStoresRequest:
		call := a.calls.ListStores(ctx).ContinuationToken(r.GetContinuationToken()).Name(r.GetName())
		if r.GetPageSize() != nil {
			call = call.PageSize(r.GetPageSize().GetValue())
		}
		return toHTTPResponse(call.Execute())
	case *openfgav1.CreateStoreRequest:
		return callWithBody(r, a.calls.CreateStore(ctx).Body)
	case *openfgav1.GetStoreRequest:
		return toHTTPResponse(a.calls.GetStore(ctx, r.GetStoreId()).Execute())
	case *openfgav1.DeleteStoreRequest:
		response, err := a.calls.DeleteStore(ctx, r.GetStoreId()).Execute()
		return toHTTPResponse(nil, response, err)
	case *openfgav1.ReadAuthorizationModelsRequest:
		call := a.calls.ReadAuthorizationModels(ctx, r.GetStoreId()).ContinuationToken(r.GetContinuationToken())
		if r.GetPageSize() != nil {
			call = call.PageSize(r.GetPageSize().GetValue())
		}
		return toHTTPResponse(call.Execute())
	case *openfgav1.ReadAuthorizationModelRequest:
		return toHTTPResponse(a.calls.ReadAuthorizationModel(ctx, r.GetStoreId(), r.GetId()).Execute())
	case *openfgav1.WriteAuthorizationModelRequest:
		return callWithBody(r, a.calls.WriteAuthorizationModel(ctx, r.GetStoreId()).Body)
	case *openfgav1.WriteRequest:
		return callWithBody(r, a.calls.Write(ctx, r.GetStoreId()).Body)
	case *openfgav1.ReadRequest:
		return callWithBody(r, a.calls.Read(ctx, r.GetStoreId()).Body)
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
		return toHTTPResponse(call.Execute())
	case *openfgav1.CheckRequest:
		return callWithBody(r, a.calls.Check(ctx, r.GetStoreId()).Body)
	case *openfgav1.ListObjectsRequest:
		return callWithBody(r, a.calls.ListObjects(ctx, r.GetStoreId()).Body)
	case *openfgav1.ListUsersRequest:
		return callWithBody(r, a.calls.ListUsers(ctx, r.GetStoreId()).Body)
	case *openfgav1.ExpandRequest:
		return callWithBody(r, a.calls.Expand(ctx, r.GetStoreId()).Body)
	default:
		return httpResponse{}, status.Error(codes.Unimplemented, "the HTTP API has no such call")
	}
}

// sdkCall is a call that is ready to be made.
type sdkCall[Reply any] interface {
	Execute() (Reply, *http.Response, error)
}

// callWithBody makes a call whose body is the request without the store id, which is part of the path. A field that the body
// type lacks is an error, because dropping it would change the request.
func callWithBody[Body, Reply any, Call sdkCall[Reply]](request proto.Message, call func(Body) Call) (httpResponse, error) {
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
		return httpResponse{}, status.Error(codes.InvalidArgument, err.Error())
	}
	return toHTTPResponse(call(body).Execute())
}

// toHTTPResponse converts the result of a call. Any complete response is an answer, whatever its status. A successful
// response that cannot be read to its end is an error.
func toHTTPResponse(_ any, response *http.Response, err error) (httpResponse, error) {
	if response == nil || response.StatusCode < http.StatusMultipleChoices && err != nil {
		return httpResponse{}, err
	}
	body, err := io.ReadAll(response.Body)
	return httpResponse{code: response.StatusCode, header: response.Header, body: body}, err
}
