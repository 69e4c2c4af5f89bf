package testbed

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

// Fault decides whether a call fails: op names it ("Write", "PATCH /apis/…"), unless it is no
// more than a question for a sign of life, which is not counted either. It may wait, to be slow, as long as ctx lives. Nil lets the call pass.
type Fault func(ctx context.Context, op string) error

// Traffic stands between clients and one server. It counts calls, and apart those that
// change something there, and fails calls on purpose.
type Traffic struct {
	mu            sync.Mutex
	calls, writes map[string]int
	before, after Fault
}

// Writes is how many calls to change something reached the server.
func (t *Traffic) Writes() int {
	sum := 0
	for _, n := range t.WritesByOp() {
		sum += n
	}
	return sum
}

// WritesByOp is [Traffic.Writes] for each operation.
func (t *Traffic) WritesByOp() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.writes)
}

// CallsByOp is how often each operation was tried, reads too.
func (t *Traffic) CallsByOp() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.calls)
}

// FailBefore decides about calls before the server sees them. Nil ends it.
func (t *Traffic) FailBefore(fault Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = fault
}

// FailAfter decides about calls that the server has carried out: a fault is a lost answer. Nil ends it.
func (t *Traffic) FailAfter(fault Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.after = fault
}

// pass lets one call through, or not.
func (t *Traffic) pass(ctx context.Context, op string, writes bool, call func() error) error {
	before, after := t.tried(op)
	if before != nil {
		if err := before(ctx, op); err != nil {
			return err
		}
	}
	if writes {
		t.wrote(op)
	}
	if err := call(); err != nil || after == nil {
		return err
	}
	return after(ctx, op)
}

// tried counts a call and tells what is to become of it.
func (t *Traffic) tried(op string) (before, after Fault) {
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

func (t *Traffic) wrote(op string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes[op]++
}

// unary watches calls to OpenFGA.
func (t *Traffic) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	op := path.Base(method)
	if list, ok := req.(*openfgav1.ListStoresRequest); ok && list.GetPageSize().GetValue() == 1 {
		op = "" // A question for a sign of life, which comes when it comes.
	}
	return t.pass(ctx, op, changesOpenFGA(req), func() error {
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}

func changesOpenFGA(req any) bool {
	switch req.(type) {
	case *openfgav1.CreateStoreRequest, *openfgav1.UpdateStoreRequest, *openfgav1.DeleteStoreRequest,
		*openfgav1.WriteAuthorizationModelRequest, *openfgav1.WriteRequest, *openfgav1.WriteAssertionsRequest:
		return true
	}
	return false
}

// roundTripper watches requests to the API server.
type roundTripper struct {
	traffic *Traffic
	next    http.RoundTripper
}

// RoundTrip is one request.
func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	var response *http.Response
	err := r.traffic.pass(req.Context(), req.Method+" "+req.URL.Path, changesKube(req), func() (err error) {
		response, err = r.next.RoundTrip(req) //nolint:bodyclose // It is the caller's to close.
		return err
	})
	return outcome(req, response, err)
}

// outcome returns what the client receives after a call that may have failed on purpose.
func outcome(req *http.Request, response *http.Response, err error) (*http.Response, error) {
	if err == nil {
		return response, nil
	}
	if response != nil {
		_ = response.Body.Close()
	}
	if answer, ok := errors.AsType[*answerError](err); ok {
		return answer.response(req), nil
	}
	return nil, err
}

// changesKube leaves out what comes and goes without a change of state: leader
// election, events for people, and questions that are put by POST.
func changesKube(req *http.Request) bool {
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
