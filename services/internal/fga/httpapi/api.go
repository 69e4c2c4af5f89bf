// Package httpapi sends the calls of an OpenFGA gRPC client over the HTTP API, because hosted servers offer only that.
// Requests, answers and error codes are those of gRPC, so a caller does not notice the difference. It adds no token
// and does not retry.
package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Client is the HTTP API of one server.
type Client struct {
	url    string
	client *http.Client
}

// New returns an API. The transport must add everything else that a request needs, such as a token.
func New(address string, transport http.RoundTripper) *Client {
	return &Client{url: address, client: &http.Client{Transport: transport, CheckRedirect: refuseRedirect}}
}

// refuseRedirect prevents redirects, because the token in the headers is only for this server.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// httpResponse holds an HTTP response.
type httpResponse struct {
	code   int
	header http.Header
	body   []byte
}

// Interceptor returns an interceptor that makes the calls over HTTP. It must be the last interceptor.
func (a *Client) Interceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		if err := checkPathIDs(request); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		message, _ := request.(proto.Message)
		got, err := a.sendRequest(ctx, path.Base(method), message)
		switch {
		case err != nil:
			return noAnswerError(ctx, err)
		case got.code >= http.StatusMultipleChoices:
			return got.grpcStatusError()
		}
		return got.decodeReply(reply)
	}
}

// checkPathIDs returns an error for an ID that cannot be part of a path. The server validates everything else.
func checkPathIDs(request any) error {
	if r, ok := request.(*openfgav1.ReadAuthorizationModelRequest); ok {
		return r.Validate()
	}
	if r, ok := request.(interface{ GetStoreId() string }); ok {
		return (&openfgav1.GetStoreRequest{StoreId: r.GetStoreId()}).Validate()
	}
	return nil
}

// decodeReply decodes the answer into reply. It returns an error for a body without any expected field, which would
// otherwise look like an empty result.
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

// hasAnyField reports whether the body has any field of a message. OpenFGA's answers always contain all fields.
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

// sendRequest makes the call of a method. An error means that no server answered.
func (a *Client) sendRequest(ctx context.Context, method string, request proto.Message) (httpResponse, error) {
	r, err := a.newRequest(ctx, method, request)
	if err != nil {
		return httpResponse{}, err
	}
	response, err := a.client.Do(r)
	if err != nil {
		return httpResponse{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return httpResponse{code: response.StatusCode, header: response.Header, body: body}, err
}

// newRequest returns the HTTP request of a method. Some fields are in the path. The others are in the body, or in the
// query of a method without a body.
func (a *Client) newRequest(ctx context.Context, method string, message proto.Message) (*http.Request, error) {
	verb, target, hasBody := endpointOf(method)
	if verb == "" {
		return nil, status.Error(codes.Unimplemented, "the HTTP API has no such call")
	}
	fields, err := fieldsOf(message)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	query, body := url.Values{}, []byte(nil)
	for name, value := range fields {
		if full := strings.ReplaceAll(target, "{"+name+"}", url.PathEscape(fmt.Sprint(value))); full != target {
			target = full
			delete(fields, name)
		} else if !hasBody {
			query.Set(name, fmt.Sprint(value))
		}
	}
	if hasBody {
		if body, err = json.Marshal(fields); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
	}
	r, err := http.NewRequestWithContext(ctx, verb, a.url+target, bytes.NewReader(body))
	if err == nil {
		r.URL.RawQuery = query.Encode()
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("User-Agent", "entail")
	}
	return r, err
}

// fieldsOf returns the fields of a message by name, as JSON values. Numbers keep their digits.
func fieldsOf(message proto.Message) (fields map[string]any, err error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(&fields)
	}
	return fields, err
}

// endpointOf returns the HTTP verb of a method, its path with names of fields in braces, and whether it has a body. The
// verb is empty for an unknown method.
func endpointOf(method string) (verb, target string, hasBody bool) {
	m := openfgav1.File_openfga_v1_openfga_service_proto.Services().ByName("OpenFGAService").Methods().ByName(protoreflect.Name(method))
	if m == nil {
		return "", "", false
	}
	rule, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
	switch {
	case rule.GetGet() != "":
		return http.MethodGet, rule.GetGet(), false
	case rule.GetDelete() != "":
		return http.MethodDelete, rule.GetDelete(), false
	case rule.GetPost() != "":
		return http.MethodPost, rule.GetPost(), true
	}
	return "", "", false
}
