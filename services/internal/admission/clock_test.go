package admission

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/bootclock"
)

// skewedAPIServer imitates an API server whose clock differs from the local one. It stores one configuration.
type skewedAPIServer struct {
	t *testing.T
	// date is the date of the server's responses. If it is zero, responses have no date.
	date  time.Time
	keeps *admissionregistrationv1.ValidatingWebhookConfiguration
}

func (e *skewedAPIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil
	if !e.date.IsZero() {
		w.Header().Set("Date", e.date.UTC().Format(http.TimeFormat))
	}
	w.Header().Set("Content-Type", "application/json")
	var answer any = e.keeps
	if r.Method != http.MethodGet {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			e.keeps = &admissionregistrationv1.ValidatingWebhookConfiguration{}
			err = json.Unmarshal(body, e.keeps)
		}
		if err != nil {
			e.t.Error(err)
		}
		answer = e.keeps
	} else if e.keeps == nil {
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		w.WriteHeader(http.StatusNotFound)
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		e.t.Error(err)
	}
}

func TestAPIServerClockUsesDateHeaders(t *testing.T) {
	for name, off := range map[string]time.Duration{"our clock is slow": time.Hour, "our clock is fast": -time.Hour, "it agrees": 0} {
		t.Run(name, func(t *testing.T) {
			api := &skewedAPIServer{t: t, date: time.Now().Add(off).Truncate(time.Second)}
			server := httptest.NewServer(api)
			defer server.Close()
			s := newServer(t, Config{URL: "https://here:1"}, func(o *Options) { o.Kube = &rest.Config{Host: server.URL} })
			c, err := s.loadOrRenewCertificate(t.Context())
			if err == nil {
				err = s.applyRegistration(t.Context(), c)
			}
			if err != nil {
				t.Fatal(err)
			}
			since, err := time.Parse(time.RFC3339, api.keeps.Annotations[enforcedSinceAnnotation])
			// An object that is stored up to one second later can have the same date.
			if err != nil || since.Before(api.date.Add(time.Second+RegistrationDelay)) || since.After(api.date.Add(time.Minute)) {
				t.Errorf("in force since %s, %v; it is %s there", since, err, api.date)
			}
			s.clock.recordDate(api.date, bootclock.Now())
			if _, err := s.EnforcedSince(); err == nil {
				t.Error("the webhooks are in force before a date is known")
			}
			s.clock.recordDate(since, bootclock.Now())
			if got, err := s.EnforcedSince(); err != nil || !got.Equal(since) {
				t.Errorf("once it does, they are in force since %s, %v", got, err)
			}
		})
	}
}

func TestRegistrationFailsWithoutAPIServerDate(t *testing.T) {
	server := httptest.NewServer(&skewedAPIServer{t: t})
	defer server.Close()
	s := newServer(t, Config{URL: "https://here:1"}, func(o *Options) { o.Kube = &rest.Config{Host: server.URL} })
	s.clock.recordDate(time.Time{}, 0)
	c, err := newCertificate("here", certificateValidity, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.applyRegistration(t.Context(), c); !errors.Is(err, errNoTime) {
		t.Errorf("it is registered: %v", err)
	}
	if _, err := s.EnforcedSince(); err == nil {
		t.Error("it is in force")
	}
}
