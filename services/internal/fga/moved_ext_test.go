package fga_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// foundWithin is the limit that the high-availability overlay promises. gRPC alone needs longer.
const foundWithin = 15 * time.Second

// nameServer answers all address queries with one address, which the test can change. If address is nil, the name does
// not exist.
type nameServer struct {
	net.PacketConn
	address atomic.Pointer[[4]byte]
}

func serveNames(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, ended := &nameServer{PacketConn: conn}, make(chan struct{})
	go func() {
		defer close(ended)
		s.serve(t)
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return s
}

func (s *nameServer) serve(t *testing.T) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := s.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(buffer[:n]); err != nil || len(m.Questions) != 1 {
			t.Errorf("call %v: got %v", m, err)
			continue
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		switch is := s.address.Load(); {
		case is == nil:
			m.RCode = dnsmessage.RCodeNameError
		case m.Questions[0].Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 1}, Body: &dnsmessage.AResource{A: *is},
			}}
		}
		answer, err := m.Pack()
		if err == nil {
			_, err = s.WriteTo(answer, from)
		}
		if err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}

func TestResolverFindsNewAddress(t *testing.T) {
	server, names := start(t, embedded.OpenFGAConfig{}), serveNames(t)
	client := connect(t, fga.Config{Target: fmt.Sprintf("dns://%s/openfga.example:%d", names.LocalAddr(), server.GRPCPort()), Plaintext: true})
	ask := func() error {
		_, err := client.CreateStore(t.Context(), "test")
		return err
	}
	refused := func(why string) {
		t.Helper()
		testenv.Eventually(t, time.Minute, func() error {
			if err := ask(); err == nil || !strings.Contains(err.Error(), why) {
				return fmt.Errorf("the answer is %w, want %s", err, why)
			}
			return nil
		})
	}
	refused("no children to pick from")
	names.address.Store(&[4]byte{127, 0, 0, 2}) // No server listens on this address.
	refused("connection refused")
	names.address.Store(&[4]byte{127, 0, 0, 1})
	testenv.Eventually(t, foundWithin, ask)
}
