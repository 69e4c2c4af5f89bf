package testenv

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Forgery is a message about an object, published by an attacker with the watcher's NATS credentials.
type Forgery struct {
	Kind            kinds.Kind
	Namespace, Name string
	// Like names the object of the same kind and namespace whose newest change is the template. If it is
	// empty, the template is the newest change of Name.
	Like string
	// Edit changes the copied message.
	Edit func(c *event.Change, object map[string]any)
}

// PublishForgery publishes a message. Its resourceVersion is that of the last message plus later. A deletion with
// another UID goes to the tombstone subject, as the watcher would publish it.
func (b *Env) PublishForgery(f Forgery, versionOffset int) {
	b.T.Helper()
	key := event.Key{Cluster: local, GroupResource: f.Kind.GroupResource, Namespace: f.Namespace, Name: f.Name}
	c := b.LastChange(f.Kind, f.Namespace, cmp.Or(f.Like, f.Name))
	object, uid := map[string]any{}, c.UID
	if err := json.Unmarshal(c.Object, &object); err != nil {
		b.T.Fatal(err)
	}
	version, err := strconv.Atoi(c.ResourceVersion)
	if err != nil {
		b.T.Fatal(err)
	}
	c.Key, c.ResourceVersion = key, strconv.Itoa(version+versionOffset)
	f.Edit(&c, object)
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata["name"], metadata["uid"], metadata["resourceVersion"] = f.Name, c.UID, c.ResourceVersion
	}
	if c.Object = nil; !c.Omitted {
		c.Object, err = json.Marshal(object)
	}
	if err != nil {
		b.T.Fatal(err)
	}
	data, err := c.Marshal()
	if err != nil {
		b.T.Fatal(err)
	}
	subject := topology.ChangeSubject(key)
	if c.Deleted && c.UID != uid {
		subject = topology.TombstoneSubject(key, c.UID)
	}
	if _, err := b.JS.PublishMsg(b.T.Context(), &nats.Msg{Subject: subject, Header: topology.ChangeHeaders(c), Data: data}); err != nil {
		b.T.Fatal(err)
	}
}

// PublishOversized publishes the message that the watcher would publish for an object that is too large for NATS.
func (b *Env) PublishOversized(kind kinds.Kind, namespace, name string) {
	b.T.Helper()
	b.PublishForgery(Forgery{Kind: kind, Namespace: namespace, Name: name, Edit: func(c *event.Change, _ map[string]any) { c.Omitted = true }}, 1)
}

// LastChange returns the last change of an object on the stream.
func (b *Env) LastChange(kind kinds.Kind, namespace, name string) event.Change {
	b.T.Helper()
	key := event.Key{Cluster: local, GroupResource: kind.GroupResource, Namespace: namespace, Name: name}
	stream, err := b.JS.Stream(b.T.Context(), topology.Changes)
	if err != nil {
		b.T.Fatal(err)
	}
	last, err := stream.GetLastMsgForSubject(b.T.Context(), topology.ChangeSubject(key))
	if err != nil {
		b.T.Fatal(err)
	}
	c, err := event.UnmarshalChange(key, last.Data)
	if err != nil {
		b.T.Fatal(err)
	}
	return c
}
