package rpc

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// Handler is one Connect service of a [Server].
type Handler struct {
	service string
	mount   func(...connect.HandlerOption) (string, http.Handler)
	access  map[string]AccessRule
	own     func(caller authenticationv1.UserInfo, request any) bool
}

// NewHandler combines an implementation with its generated constructor. access holds the rule of each procedure; its
// keys are the generated constants "/package.Service/Method":
//
//	rpc.NewHandler[storev1connect.StoreServiceHandler](
//		storev1connect.StoreServiceName, storev1connect.NewStoreServiceHandler, implementation, access)
func NewHandler[S any](
	service string,
	construct func(S, ...connect.HandlerOption) (string, http.Handler),
	implementation S,
	access map[string]AccessRule,
) Handler {
	mount := func(options ...connect.HandlerOption) (string, http.Handler) {
		return construct(implementation, options...)
	}
	return Handler{service: service, mount: mount, access: access}
}

// ExemptOwnRequests returns a handler that requires no right for requests for which own returns true.
func (h Handler) ExemptOwnRequests(own func(caller authenticationv1.UserInfo, request any) bool) Handler {
	h.own = own
	return h
}

// validateAccessRules returns an error for procedures without an access rule. Otherwise only the first call would
// report them.
func (h Handler) validateAccessRules() error {
	methods, err := h.methodDescriptors()
	var missing []error
	for _, procedure := range slices.Sorted(maps.Keys(methods)) {
		if h.access[procedure] == nil {
			missing = append(missing, fmt.Errorf("procedure %s has no access rule", procedure))
		}
	}
	return errors.Join(append(missing, err)...)
}

// streamProcedures returns the procedures with a streaming answer.
func (h Handler) streamProcedures() map[string]struct{} {
	methods, _ := h.methodDescriptors() // An unknown service has no methods.
	streams := map[string]struct{}{}
	for procedure, method := range methods {
		if method.IsStreamingServer() {
			streams[procedure] = struct{}{}
		}
	}
	return streams
}

func (h Handler) methodDescriptors() (map[string]protoreflect.MethodDescriptor, error) {
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(h.service))
	if err != nil {
		return nil, fmt.Errorf("service %q: %w", h.service, err)
	}
	service, ok := descriptor.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil, fmt.Errorf("%q is not a service", h.service)
	}
	methods := map[string]protoreflect.MethodDescriptor{}
	for i := range service.Methods().Len() {
		method := service.Methods().Get(i)
		methods[fmt.Sprintf("/%s/%s", h.service, method.Name())] = method
	}
	return methods, nil
}
