package rpc

import (
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Handler is one Connect service of a [Server].
type Handler struct {
	service string
	mount   func(...connect.HandlerOption) (string, http.Handler)
	access  map[string]Access
}

// NewHandler couples an implementation with its generated constructor, and says for each
// procedure (its generated constant, "/package.Service/Method") which right a call needs:
//
//	rpc.NewHandler[storev1connect.StoreServiceHandler](
//		storev1connect.StoreServiceName, storev1connect.NewStoreServiceHandler, implementation, access)
func NewHandler[S any](
	service string,
	construct func(S, ...connect.HandlerOption) (string, http.Handler),
	implementation S,
	access map[string]Access,
) Handler {
	mount := func(options ...connect.HandlerOption) (string, http.Handler) {
		return construct(implementation, options...)
	}
	return Handler{service: service, mount: mount, access: access}
}

// validate makes sure that no procedure lacks its right: that would show only at the first call.
func (h Handler) validate() error {
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(h.service))
	if err != nil {
		return fmt.Errorf("service %q: %w", h.service, err)
	}
	service, ok := descriptor.(protoreflect.ServiceDescriptor)
	if !ok {
		return fmt.Errorf("%q is not a service", h.service)
	}
	var missing []error
	for i := range service.Methods().Len() {
		procedure := fmt.Sprintf("/%s/%s", h.service, service.Methods().Get(i).Name())
		if h.access[procedure] == nil {
			missing = append(missing, fmt.Errorf("procedure %s has no access rule", procedure))
		}
	}
	return errors.Join(missing...)
}
