package testenv

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/grpc"
)

// Fault decides whether a call fails; nil means that it passes. op is an operation such as "Write" or "PATCH /apis/…".
// It is empty for a health probe, which is not counted. A Fault may block until ctx ends.
type Fault func(ctx context.Context, op string) error

// Traffic passes the calls of clients to one server. It counts all calls and, separately, the writes. It can also make
// calls fail.
type Traffic struct {
	mu            sync.Mutex
	calls, writes map[string]int
	before, after Fault
}

// Writes returns the number of writes that were sent to the server.
func (t *Traffic) Writes() int {
	sum := 0
	for _, n := range t.WritesByOp() {
		sum += n
	}
	return sum
}

// WritesByOp returns the number of writes for each operation.
func (t *Traffic) WritesByOp() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.writes)
}

// CallsByOp returns the number of calls for each operation, including reads and failed calls.
func (t *Traffic) CallsByOp() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.calls)
}

// FailBefore sets the fault for calls before the server receives them. Nil removes it.
func (t *Traffic) FailBefore(fault Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = fault
}

// FailAfter sets the fault for calls that the server has executed, so that only the answer is lost. Nil removes it.
func (t *Traffic) FailAfter(fault Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.after = fault
}

// passCall counts a call and makes it, unless a fault prevents the call.
func (t *Traffic) passCall(ctx context.Context, op string, writes bool, call func() error) error {
	before, after := t.countCall(op)
	if before != nil {
		if err := before(ctx, op); err != nil {
			return err
		}
	}
	if writes {
		t.countWrite(op)
	}
	if err := call(); err != nil || after == nil {
		return err
	}
	return after(ctx, op)
}

// countCall counts a call and returns the current faults.
func (t *Traffic) countCall(op string) (before, after Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls, t.writes = map[string]int{}, map[string]int{}
	}
	if op != "" {
		t.calls[op]++
	}
	return t.before, t.after
}

func (t *Traffic) countWrite(op string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes[op]++
}

// interceptUnary passes calls to OpenFGA. It is a [grpc.UnaryClientInterceptor].
func (t *Traffic) interceptUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	op := path.Base(method)
	if list, ok := req.(*openfgav1.ListStoresRequest); ok && list.GetPageSize().GetValue() == 1 {
		op = "" // Health probes come at random times, so they are not counted.
	}
	return t.passCall(ctx, op, isOpenFGAChange(req), func() error {
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}

func isOpenFGAChange(req any) bool {
	switch req.(type) {
	case *openfgav1.CreateStoreRequest, *openfgav1.UpdateStoreRequest, *openfgav1.DeleteStoreRequest,
		*openfgav1.WriteAuthorizationModelRequest, *openfgav1.WriteRequest, *openfgav1.WriteAssertionsRequest:
		return true
	}
	return false
}

// trafficTransport passes requests to the API server through [Traffic].
type trafficTransport struct {
	traffic *Traffic
	next    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (r trafficTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var response *http.Response
	err := r.traffic.passCall(req.Context(), req.Method+" "+req.URL.Path, isKubeChange(req), func() (err error) {
		response, err = r.next.RoundTrip(req) //nolint:bodyclose // It is the caller's to close.
		return err
	})
	return clientOutcome(req, response, err)
}

// clientOutcome returns the response or error that the client receives after the call and its faults.
func clientOutcome(req *http.Request, response *http.Response, err error) (*http.Response, error) {
	if err == nil {
		return response, nil
	}
	if response != nil {
		_ = response.Body.Close()
	}
	if answer, ok := errors.AsType[*injectedResponseError](err); ok {
		return answer.toResponse(req), nil
	}
	return nil, err
}

// isKubeChange reports whether a request changes state. It ignores leases, events, and reviews, which are sent by
// POST.
func isKubeChange(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	for _, aside := range []string{"/leases", "/events", "/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"} {
		if strings.Contains(req.URL.Path, aside) {
			return false
		}
	}
	return true
}
