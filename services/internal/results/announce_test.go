package results

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestALongAnnouncementIsSeveral(t *testing.T) {
	js := bus(t)
	var objects []string
	for i := range 2*objectsPerAnnouncement + 1 {
		objects = append(objects, fmt.Sprint("doc:", i))
	}
	a := NewAnnouncer(js, slog.New(slog.DiscardHandler))
	a.Announce(&eventv1.StoreChanged{StoreId: "01", Objects: objects})
	a.Announce(&eventv1.StoreChanged{StoreId: "01", AuthorizationModelId: "m"})
	a.Flush()
	s, err := js.Stream(t.Context(), topology.Announce)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for sequence, model := range []string{"", "", "", "m"} {
		msg, err := s.GetMsg(t.Context(), uint64(sequence)+1)
		if err != nil {
			t.Fatal(err)
		}
		var m eventv1.StoreChanged
		if err := proto.Unmarshal(msg.Data, &m); err != nil {
			t.Fatal(err)
		}
		if m.GetStoreId() != "01" || m.GetAuthorizationModelId() != model {
			t.Errorf("message %d is %v", sequence, &m)
		}
		got = append(got, m.GetObjects()...)
	}
	if !slices.Equal(got, objects) {
		t.Errorf("announced %d objects, want all %d in order", len(got), len(objects))
	}
}
