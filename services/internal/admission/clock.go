package admission

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/bootclock"
)

var errNoTime = errors.New("the API server has not said what time it is, by the date of an answer")

// clock is that of the API server, by the dates of its answers. What it stores it dates by its own
// clock; ours may be wrong, and is not asked.
type clock struct {
	mu sync.Mutex
	// date is that of the newest answer, in whole seconds; zero before the first. It was given between
	// sent and received, by [bootclock.Now].
	date           time.Time
	sent, received time.Duration
}

// now is between these two.
func (c *clock) now() (earliest, latest time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return earliest, latest, errNoTime
	}
	return c.date.Add(bootclock.Since(c.received)), c.date.Add(time.Second + bootclock.Since(c.sent)), nil
}

// set takes the date of an answer to what was sent at a time, and has just been received.
func (c *clock) set(date time.Time, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date, c.sent, c.received = date, sent, bootclock.Now()
}

// watch reads the date of every answer.
func (c *clock) watch(next http.RoundTripper) http.RoundTripper { return dated{c, next} }

type dated struct {
	clock *clock
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := bootclock.Now()
	answer, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		d.clock.set(date, sent)
	}
	return answer, nil
}
