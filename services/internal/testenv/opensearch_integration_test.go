//go:build integration

package testenv

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

const (
	anne           = securityAPI + "internalusers/anne"
	passwordOfAnne = "correct horse battery staple"
)

func (o *OpenSearchServer) wants(t *testing.T, status int, method, path string, body any) []byte {
	t.Helper()
	got, answer := o.RequestAsAdmin(t, method, path, body)
	if got != status {
		t.Fatalf("%s %s: %d %s; want %d", method, path, got, answer, status)
	}
	return answer
}

func TestOpenSearchIsResetAfterTest(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		o := StartOpenSearch(t)
		o.wants(t, http.StatusCreated, http.MethodPut, anne, map[string]any{"password": passwordOfAnne})
		o.wants(t, http.StatusCreated, http.MethodPut, securityAPI+"roles/a~b%2Fc", map[string]any{"description": "odd"})
		o.wants(t, http.StatusCreated, http.MethodPut, securityAPI+"rolesmapping/a~b%2Fc", map[string]any{"users": []string{"anne"}})
		o.wants(t, http.StatusOK, http.MethodPut, securityAPI+"rolesmapping/all_access", map[string]any{"users": []string{"anne"}})
	})
	t.Run("the next", func(t *testing.T) {
		o := StartOpenSearch(t)
		o.wants(t, http.StatusNotFound, http.MethodGet, anne, nil)
		o.wants(t, http.StatusNotFound, http.MethodGet, securityAPI+"roles/a~b%2Fc", nil)
		if answer := o.wants(t, http.StatusOK, http.MethodGet, securityAPI+"rolesmapping/all_access", nil); strings.Contains(string(answer), "anne") {
			t.Errorf("still there: %s", answer)
		}
		o.DeleteSecurityIndex(t)
	})
	t.Run("after one that wiped everything", func(t *testing.T) {
		StartOpenSearch(t).wants(t, http.StatusOK, http.MethodGet, securityAPI+"roles", nil)
	})
}

func TestOpenSearchTrafficCountsAndInjectsFaults(t *testing.T) {
	o := StartOpenSearch(t)
	cfg, err := o.process.server.ClientTLSConfig(true)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}
	put := func() (status int, err error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, o.URL()+anne, strings.NewReader(`{"password":"`+passwordOfAnne+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		status, _, err = sendRequest(&http.Client{Transport: transport}, request)
		return status, err
	}
	o.FailBefore(func(context.Context, string) error { return InjectedResponseError(http.StatusTooManyRequests, "later") })
	if status, err := put(); status != http.StatusTooManyRequests || err != nil || o.Writes() != 0 {
		t.Errorf("an answer of a fault: %d, %v, %d writes", status, err, o.Writes())
	}
	o.FailBefore(nil)
	o.FailAfter(func(context.Context, string) error { return errors.New("lost") })
	if status, err := put(); err == nil {
		t.Errorf("an answer that is lost: %d", status)
	}
	o.FailAfter(nil)
	if status, err := put(); status != http.StatusOK || err != nil { // The server had executed the call.
		t.Errorf("without a fault: %d, %v", status, err)
	}
	if got := o.WritesByOp()["PUT internalusers/anne"]; got != 2 {
		t.Errorf("%d writes: %v; want 2", got, o.WritesByOp())
	}
	transport.TLSClientConfig.Certificates = nil
	if status, err := put(); status != http.StatusUnauthorized || err != nil {
		t.Errorf("without the certificate: %d, %v", status, err)
	}
}
