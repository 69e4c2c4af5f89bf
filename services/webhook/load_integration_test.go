//go:build integration

package webhook_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// histogram counts durations by size, with a precision of 3 %.
type histogram struct {
	counts [1024]atomic.Int64
	// processor is the processor time of one request, of client and server together, or 0 if it is not measured.
	processor time.Duration
}

const perOctave = 24

func (h *histogram) add(d time.Duration) {
	at := int(math.Log2(float64(max(d, 1))) * perOctave)
	h.counts[min(at, len(h.counts)-1)].Add(1)
}

// at returns the duration that a share of all durations does not exceed.
func (h *histogram) at(share float64) time.Duration {
	total := int64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
	}
	below := int64(0)
	for i := range h.counts {
		if below += h.counts[i].Load(); float64(below) >= share*float64(total) && below > 0 {
			return time.Duration(math.Exp2(float64(i+1) / perOctave))
		}
	}
	return 0
}

// report reports percentiles as metrics of a benchmark.
func (h *histogram) report(b *testing.B, what string) {
	b.ReportMetric(float64(h.at(.5).Microseconds()), "µs/p50-"+what)
	b.ReportMetric(float64(h.at(.99).Microseconds()), "µs/p99-"+what)
	if h.processor > 0 {
		b.ReportMetric(float64(h.processor.Nanoseconds())/1000, "cpu-µs/"+what)
	}
}

// closed runs askers that send one request after the other, for the time lasting. It returns the requests per second.
func closed(b *testing.B, askers int, ask func() error) (rate float64, h *histogram) {
	b.Helper()
	h = &histogram{}
	var asked atomic.Int64
	var asking sync.WaitGroup
	began, used := time.Now(), processorTime(b)
	for range askers {
		asking.Go(func() {
			for time.Since(began) < lasting {
				start := time.Now()
				if err := ask(); err != nil {
					b.Error(err)
					return
				}
				h.add(time.Since(start))
				asked.Add(1)
			}
		})
	}
	asking.Wait()
	h.processor = (processorTime(b) - used) / time.Duration(max(1, asked.Load()))
	return float64(asked.Load()) / time.Since(began).Seconds(), h
}

// processorTime returns the processor time of this process, including all servers in it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// open sends requests at a fixed rate until ctx ends, without waiting for earlier answers. A delayed request counts
// from the time at which it was due. A thread of its own keeps the time, because a timer of the runtime is too late for
// these durations.
func open(ctx context.Context, b *testing.B, rate int, ask func() error) (wait func() *histogram) {
	b.Helper()
	const askers = 32
	h, due := &histogram{}, make(chan time.Time, rate)
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			for at := range due {
				if err := ask(); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
				h.add(time.Since(at))
			}
		})
	}
	asking.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(due)
		every := time.Second / time.Duration(rate)
		for next := time.Now(); ctx.Err() == nil; next = next.Add(every) {
			if early := time.Until(next); early > 0 {
				pause := syscall.NsecToTimespec(int64(early))
				_ = syscall.Nanosleep(&pause, nil) // After an early wake-up the request is early, by less than one interval.
			}
			select {
			case due <- next:
			case <-ctx.Done():
			}
		}
	})
	return func() *histogram {
		asking.Wait()
		return h
	}
}
