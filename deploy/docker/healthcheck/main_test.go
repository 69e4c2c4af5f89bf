package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCheckRequiresStatusOK(t *testing.T) {
	status := http.StatusOK
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	for _, server := range []string{plain.URL, secure.URL} {
		status = http.StatusOK
		if err := check([]string{server + "/readyz"}); err != nil {
			t.Error(err)
		}
		status = http.StatusServiceUnavailable
		if err := check([]string{server}); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("503 gives %v", err)
		}
	}
	plain.Close()
	if err := check([]string{plain.URL}); err == nil {
		t.Error("nobody there, and it is well")
	}
}

func TestCheckRequiresLoopback(t *testing.T) {
	for _, url := range []string{"http://192.0.2.1:80/", "https://example.org/", "http://", "readyz", "\x00"} {
		if err := check([]string{url}); err == nil {
			t.Errorf("%q is asked", url)
		}
	}
	if err := check(nil); err == nil || !strings.Contains(err.Error(), "usage") {
		t.Errorf("without a URL: %v", err)
	}
}
