package fga_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/proto"

	"github.com/entail-dev/entail/services/internal/devserver/embedded"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestCallsAreBalancedOverAddresses(t *testing.T) {
	servers := []*embedded.OpenFGAServer{start(t, embedded.OpenFGAConfig{}), start(t, embedded.OpenFGAConfig{})}
	names := manual.NewBuilderWithScheme("dns")
	var state resolver.State
	for _, s := range servers {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: s.GRPCTarget()}}})
	}
	names.InitialState(state)
	client := connect(t, fga.Config{Target: "dns:///openfga.example:8081", Plaintext: true, DialOptions: []grpc.DialOption{grpc.WithResolvers(names)}})
	made := 0
	testenv.Eventually(t, time.Minute, func() error { // Until both addresses have a connection.
		if _, err := client.CreateStore(t.Context(), "wanted"); err != nil {
			return err
		}
		made++
		for _, s := range servers {
			if found, err := connect(t, fga.Config{Target: s.GRPCTarget()}).FindStores(t.Context(), "wanted"); err != nil || len(found) == 0 {
				return fmt.Errorf("%s has no store after %d calls: %w", s.GRPCTarget(), made, err)
			}
		}
		return nil
	})
	servers[0].Stop()
	testenv.Eventually(t, time.Minute, func() error {
		for range 5 {
			if _, err := client.CreateStore(t.Context(), "wanted"); err != nil {
				if !fault.IsUnavailable(err) {
					t.Error(err)
				}
				return err
			}
		}
		return nil
	})
}

const rich = `model
  schema 1.1
type user
type group
  relations
    define member: [user, group#member, user:*]
type folder
  relations
    define parent: [folder]
    define owner: [user, group#member with at_night]
    define viewer: ([user] or owner or viewer from parent) but not banned
    define banned: [user, user:*]
    define both: viewer and owner
condition at_night(hours: list<int>, zone: map<string>, now: timestamp, from: ipaddress) {
  hours.size() > 2
}
`

func TestModelIsEqualOverGRPCAndHTTP(t *testing.T) {
	server := start(t, embedded.OpenFGAConfig{})
	clients := map[string]*fga.Client{
		"gRPC": connect(t, fga.Config{Target: server.GRPCTarget()}), "HTTP": connect(t, fga.Config{Target: server.URL()}),
	}
	wanted := parse(t, rich)
	for _, d := range wanted.GetTypeDefinitions() {
		if d.GetMetadata() != nil {
			d.Metadata.Module = "folders"
		}
	}
	for by, writer := range clients {
		store, err := writer.CreateStore(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		id, err := writer.WriteModel(t.Context(), store, wanted)
		if err != nil {
			t.Fatal(err)
		}
		for over, reader := range clients {
			got, err := reader.ReadModel(t.Context(), store, id)
			if err != nil {
				t.Fatal(err)
			}
			if got.Id = ""; !proto.Equal(got, wanted) {
				t.Errorf("written over %s, read over %s:\n%v\nwant\n%v", by, over, got, wanted)
			}
		}
	}
}
