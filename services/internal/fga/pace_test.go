package fga

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

func busy(t *testing.T, code codes.Code, wait time.Duration) error {
	t.Helper()
	s, err := status.New(code, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

func TestServerPauseDelaysCalls(t *testing.T) {
	for name, test := range map[string]struct {
		first error
		// took is the duration of the first call, and later the duration of the next call.
		took, later time.Duration
		code, after codes.Code
	}{
		"nothing asked for":           {},
		"a limit":                     {first: busy(t, codes.ResourceExhausted, 3*time.Second), took: 3 * time.Second},
		"a limit beyond the call":     {first: busy(t, codes.ResourceExhausted, 30*time.Second), code: codes.Unavailable, after: codes.Unavailable},
		"it may have been done":       {first: busy(t, codes.Unavailable, 3*time.Second), code: codes.Unavailable, later: 3 * time.Second},
		"a limit that says nothing":   {first: status.Error(codes.ResourceExhausted, "busy"), code: codes.ResourceExhausted},
		"a refusal":                   {first: status.Error(codes.InvalidArgument, "no"), code: codes.InvalidArgument},
		"a limit without any waiting": {first: busy(t, codes.ResourceExhausted, 0), took: minPause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &serverPause{}
				err := test.first
				call := func() (time.Duration, codes.Code) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					begun := time.Now()
					got := p.retryInterceptor()(ctx, "", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
						now := err
						err = nil
						return now
					})
					return time.Since(begun), status.Code(got)
				}
				if took, code := call(); took != test.took || code != test.code {
					t.Errorf("the call takes %s and ends with %s", took, code)
				}
				if took, code := call(); took != test.later || code != test.after {
					t.Errorf("the next takes %s and ends with %s", took, code)
				}
			})
		})
	}
}

func TestServerPauseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &serverPause{}
		if !p.recordRequestedPause(busy(t, codes.Unavailable, 24*time.Hour)) {
			t.Fatal("nothing is held")
		}
		begun := time.Now()
		if err := p.waitUntilAllowed(t.Context()); err != nil || time.Since(begun) != maxPause {
			t.Errorf("waited %s, %v", time.Since(begun), err)
		}
		p.recordRequestedPause(busy(t, codes.Unavailable, time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.waitUntilAllowed(ctx); status.Code(err) != codes.Unavailable {
			t.Errorf("cancelled: %v", err)
		}
	})
}
