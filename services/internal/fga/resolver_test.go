package fga

import (
	"errors"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"
)

// nameServer builds resolvers. Each makes one lookup, which takes a given time.
type nameServer struct {
	takes        time.Duration
	err          error
	looks, alive atomic.Int32
}

func (*nameServer) Scheme() string { return schemeDNS }

func (s *nameServer) Build(_ resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	s.looks.Add(1)
	s.alive.Add(1)
	go func() {
		<-time.After(s.takes)
		if s.err != nil {
			conn.ReportError(s.err)
			return
		}
		_ = conn.UpdateState(resolver.State{})
	}()
	return delayedLookup{s}, nil
}

type delayedLookup struct{ of *nameServer }

func (delayedLookup) ResolveNow(resolver.ResolveNowOptions) {}
func (l delayedLookup) Close()                              { l.of.alive.Add(-1) }

// resolverConn receives the resolved addresses.
type resolverConn struct {
	resolver.ClientConn
	errs    atomic.Int32
	refuses error
}

func (c *resolverConn) UpdateState(resolver.State) error { return c.refuses }
func (c *resolverConn) ReportError(error)                { c.errs.Add(1) }

func TestResolverRepeatsLookupAfterFailureOnly(t *testing.T) {
	none := errors.New("no such host")
	for name, test := range map[string]struct {
		takes    time.Duration
		err      error
		refuses  error
		wants    bool
		min, max int32
	}{
		"there is no such name":     {err: none, min: 290, max: 301},
		"no server of names":        {err: none, takes: 5 * time.Second, min: 80, max: 90},
		"addresses are of no use":   {refuses: none, min: 290, max: 301},
		"connections end":           {wants: true, min: 290, max: 301},
		"connections end, slow DNS": {takes: 20 * time.Second, wants: true, min: 25, max: 30},
		"nothing is wrong":          {min: 1, max: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, asking := &nameServer{takes: test.takes, err: test.err}, &resolverConn{refuses: test.refuses}
				r, err := dnsBuilder{server}.Build(resolver.Target{URL: url.URL{Scheme: schemeDNS}}, asking, resolver.BuildOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for range 600 {
					if test.wants {
						r.ResolveNow(resolver.ResolveNowOptions{})
					}
					<-time.After(time.Second)
				}
				if server.alive.Load() != 1 {
					t.Errorf("%d resolvers are alive", server.alive.Load())
				}
				r.Close()
				if n := server.looks.Load(); n < test.min || n > test.max {
					t.Errorf("got %d lookups within 10 minutes, want %d to %d", n, test.min, test.max)
				}
				if told := asking.errs.Load(); (told > 0) != (test.err != nil) {
					t.Errorf("got %d reported errors", told)
				}
				if server.alive.Load() != 0 {
					t.Errorf("%d resolvers are left", server.alive.Load())
				}
				<-time.After(time.Minute) // The lookup has ended, and no other lookup follows.
			})
		})
	}
}

// refusingDialer returns an error for each target.
type refusingDialer struct{ *nameServer }

func (refusingDialer) Build(resolver.Target, resolver.ClientConn, resolver.BuildOptions) (resolver.Resolver, error) {
	return nil, errors.New("no target")
}

func TestDialRefusesInvalidTarget(t *testing.T) {
	if r, err := (dnsBuilder{refusingDialer{}}).Build(resolver.Target{}, &resolverConn{}, resolver.BuildOptions{}); err == nil || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}
