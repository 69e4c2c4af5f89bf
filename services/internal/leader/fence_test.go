package leader_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/entail-dev/entail/services/internal/leader"
)

func TestFenceSendsChangesOnlyDuringTerm(t *testing.T) {
	nobody := leader.NewElector(nil, "test", takeover, slog.New(slog.DiscardHandler))
	reached := 0
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer api.Close()
	for method, leaves := range map[string]bool{
		http.MethodGet: true, http.MethodHead: true, http.MethodPost: false, http.MethodPut: false, http.MethodPatch: false, http.MethodDelete: false,
	} {
		r, err := http.NewRequestWithContext(t.Context(), method, api.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := nobody.FenceTransport(http.DefaultTransport).RoundTrip(r)
		if (err == nil) != leaves || !leaves && !errors.Is(err, leader.ErrNotLeader) {
			t.Errorf("%s: %v", method, err)
		}
		if answer != nil {
			_ = answer.Body.Close()
		}
	}
	if reached != 2 {
		t.Errorf("%d requests left", reached)
	}
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()), nobody.FenceDialOption(),
		grpc.WithChainUnaryInterceptor(func(_ context.Context, method string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			return status.Error(codes.Aborted, method)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for call, leaves := range map[string]bool{
		"Check": true, "Read": true, "ReadAuthorizationModel": true, "ListStores": true, "GetStore": true,
		"Write": false, "WriteAuthorizationModel": false, "CreateStore": false, "DeleteStore": false, "UpdateStore": false, "WhateverComesNext": false,
	} {
		err := conn.Invoke(t.Context(), "/openfga.v1.OpenFGAService/"+call, nil, nil)
		if left := status.Code(err) == codes.Aborted; left != leaves {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestFenceCancelsCallWhenLeaseExpires(t *testing.T) {
	b := newTestStreams(t)
	js := b.connect()
	replica := b.start(js)
	b.deliver()
	await(t, "the replica leads", replica.IsLeader)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		js.Conn().Close() // From now on the lease cannot be renewed.
		<-r.Context().Done()
	}))
	defer api.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*takeover.LeaseLifetime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, api.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := replica.FenceTransport(http.DefaultTransport).RoundTrip(r)
	if err == nil {
		err = answer.Body.Close()
	}
	if !errors.Is(err, leader.ErrNotLeader) {
		t.Errorf("it ended with %v", err)
	}
}

// A canceled call may still take effect, so a call must not be canceled while the lease is valid.
func TestFenceKeepsCallWhileLeaseIsRenewed(t *testing.T) {
	b := newTestStreams(t)
	replica := b.start(b.connect())
	b.deliver()
	await(t, "the replica leads", replica.IsLeader)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(takeover.LeaseLifetime + time.Second): // longer than a lease is valid
		}
	}))
	defer api.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := replica.FenceTransport(http.DefaultTransport).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}
