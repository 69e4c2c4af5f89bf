package admission

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/bootclock"
)

var errNoTime = errors.New("no answer of the API server had a date yet")

// apiServerClock estimates the time of the API server from the dates of its responses. The API server dates objects by
// its own clock, and the local clock may be wrong.
type apiServerClock struct {
	mu sync.Mutex
	// date is the date of the newest response, in whole seconds; zero before the first response. sent and received are
	// the times of the request and of the response, by [bootclock.Now].
	date           time.Time
	sent, received time.Duration
}

// currentTimeBounds returns bounds for the current time of the API server. It returns an error before the first
// response.
func (c *apiServerClock) currentTimeBounds() (earliest, latest time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return earliest, latest, errNoTime
	}
	return c.date.Add(bootclock.Since(c.received)), c.date.Add(time.Second + bootclock.Since(c.sent)), nil
}

// recordDate records the date of a response that has just arrived. sent is the time of its request.
func (c *apiServerClock) recordDate(date time.Time, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date, c.sent, c.received = date, sent, bootclock.Now()
}

// newRecordingTransport returns a transport that records the date of each response.
func (c *apiServerClock) newRecordingTransport(next http.RoundTripper) http.RoundTripper {
	return dateRecordingTransport{c, next}
}

type dateRecordingTransport struct {
	clock *apiServerClock
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (d dateRecordingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := bootclock.Now()
	answer, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		d.clock.recordDate(date, sent)
	}
	return answer, nil
}
