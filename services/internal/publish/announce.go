package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/topology"
)

// objectsPerAnnouncement bounds one announcement; a longer list takes several.
const objectsPerAnnouncement = 1000

// Announce tells caches what changed in a store.
func Announce(ctx context.Context, js jetstream.JetStream, m *eventv1.StoreChanged) error {
	parts := [][]string{nil}
	if len(m.GetObjects()) > 0 {
		parts = slices.Collect(slices.Chunk(m.GetObjects(), objectsPerAnnouncement))
	}
	for _, objects := range parts {
		data, err := proto.Marshal(&eventv1.StoreChanged{
			StoreId: m.GetStoreId(), AuthorizationModelId: m.GetAuthorizationModelId(), Objects: objects,
		})
		if err != nil {
			return fmt.Errorf("encode announcement of store %s: %w", m.GetStoreId(), err)
		}
		if _, err := js.Publish(ctx, topology.AnnounceSubject(m.GetStoreId()), data); err != nil {
			return fault.Unavailable(fmt.Errorf("announce change of store %s: %w", m.GetStoreId(), err))
		}
	}
	return nil
}
