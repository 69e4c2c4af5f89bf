package testenv

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// PublishObjects publishes objects as the watcher would. The API server need not have them. Then it publishes snapshot
// markers for them, and barriers.
func (b *Env) PublishObjects(of []kinds.Kind, all func(put func(kinds.Kind, metav1.Object))) {
	b.T.Helper()
	counts := map[event.GroupResource]int{}
	for _, kind := range of {
		counts[kind.GroupResource] = 0
	}
	version := 0
	all(func(kind kinds.Kind, object metav1.Object) {
		version++
		counts[kind.GroupResource]++
		b.publishObject(kind, object, version)
		if version%1000 == 0 {
			<-b.JS.PublishAsyncComplete()
		}
	})
	<-b.JS.PublishAsyncComplete()
	stream, err := b.JS.Stream(b.T.Context(), topology.Changes)
	if err != nil {
		b.T.Fatal(err)
	}
	info := stream.CachedInfo()
	for kind, n := range counts {
		data, err := proto.Marshal(&eventv1.SnapshotMarker{
			Cluster: local, Group: kind.Group, Resource: kind.Resource, Epoch: "e", Count: int64(n),
			Stream: topology.StreamID(info), LastSequence: info.State.LastSeq, Served: true,
		})
		if err == nil {
			_, err = b.JS.Publish(b.T.Context(), topology.MarkerSubject(local, kind), data)
		}
		if err != nil {
			b.T.Fatal(err)
		}
	}
	b.filled.Do(func() { WriteBarriers(b.T, b.JS, local) })
}

func (b *Env) publishObject(kind kinds.Kind, object metav1.Object, version int) {
	b.T.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		b.T.Fatal(err)
	}
	c := event.Change{
		Key:     event.Key{Cluster: local, GroupResource: kind.GroupResource, Namespace: object.GetNamespace(), Name: object.GetName()},
		Version: kind.Version, Kind: kind.Kind, UID: string(object.GetUID()), Generation: object.GetGeneration(),
		ResourceVersion: cmp.Or(object.GetResourceVersion(), fmt.Sprint(version)),
		Object:          data, Epoch: "e", ObservedAt: time.Now(),
	}
	wire, err := c.Marshal()
	if err == nil {
		_, err = b.JS.PublishMsgAsync(&nats.Msg{Subject: topology.ChangeSubject(c.Key), Header: topology.ChangeHeaders(c), Data: wire})
	}
	if err != nil {
		b.T.Fatal(err)
	}
}
