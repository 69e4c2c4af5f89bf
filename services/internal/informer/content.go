package informer

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
)

// kindContents holds the live objects and the tombstones of one kind.
type kindContents[T any] struct {
	live *indexer[event.Key, T]
	gone *tombstones[T]
	// denied holds states that the API server contradicted. They become tombstones if the cluster's history turns out
	// to be rewound.
	denied map[event.Key]*Object[T]
}

// isNewChange reports whether c is newer than the content of the lister. A deletion is compared with the live object
// only if both have the same UID and epoch.
func (t *Lister[T]) isNewChange(c event.Change) bool {
	live := t.writing.live.objects[c.Key]
	if c.Deleted {
		gone := t.writing.gone.getTombstone(c.Key, c.UID)
		return (gone == nil || c.Replaces(gone.Change)) &&
			(live == nil || live.UID != c.UID || live.Epoch != c.Epoch || c.Replaces(live.Change))
	}
	for gone := range t.writing.gone.tombstonesOf(c.Key) {
		if !c.Replaces(gone.Change) {
			return false
		}
	}
	return live == nil || c.Replaces(live.Change)
}

func (t *Lister[T]) decodeChange(c event.Change, blank bool) (func() bool, error) {
	o := &Object[T]{Change: c}
	o.Object = nil
	if len(c.Object) > 0 {
		value := new(T)
		if err := event.DecodeObject(c.Object, value); err == nil {
			o.Value = compactValue(value)
		} else if !c.Deleted && blank {
			return func() bool { return t.putWithoutFallback(o) }, err
		} else if !c.Deleted {
			// Only a deletion may have content that cannot be decoded.
			return nil, err
		}
	}
	return func() bool { return t.putObject(o) }, nil
}

// putWithoutFallback stores o with its present value, even if the value is nil.
func (t *Lister[T]) putWithoutFallback(o *Object[T]) (taken bool) {
	if taken = t.isNewChange(o.Change); taken {
		t.writing.replaceLive(t.writing.live.objects[o.Key], o)
	}
	return taken
}

// compactValue returns a copy of value that uses less memory: slices without spare capacity, and shared strings for
// equal conditions.
func compactValue[T any](value *T) *T {
	if c, ok := any(value).(interface{ DeepCopy() *T }); ok {
		value = c.DeepCopy()
	}
	if c, ok := any(value).(interface{ GetConditions() []metav1.Condition }); ok {
		said := c.GetConditions()
		for i := range said {
			for _, text := range []*string{&said[i].Type, &said[i].Reason, &said[i].Message} {
				*text = unique.Make(*text).Value()
			}
			said[i].Status = unique.Make(said[i].Status).Value()
		}
	}
	return value
}

// putObject stores o unless the lister already holds this state or a newer one. A deletion without a last state gets
// the value of the live object.
func (t *Lister[T]) putObject(o *Object[T]) (taken bool) {
	if !t.isNewChange(o.Change) {
		return false
	}
	c := t.writing
	was := c.live.objects[o.Key]
	if was != nil && was.UID == o.UID && o.Value == nil {
		o.Value = was.Value
	}
	switch {
	case !o.Deleted:
		c.replaceLive(was, o)
	case was != nil && (was.UID == o.UID || was.Epoch == o.Epoch) && o.Replaces(was.Change):
		// If the UIDs differ, the live object was deleted before the newly deleted object was created.
		if c.live.removeKey(o.Key); was.UID != o.UID {
			c.gone.addTombstoneForReplaced(was, o.Change)
		}
		fallthrough
	default:
		c.gone.putTombstone(o)
	}
	return true
}

// replaceLive makes o the live object of its name. It turns a displaced object into a tombstone.
func (c *kindContents[T]) replaceLive(was, o *Object[T]) {
	if was != nil && (was.UID != o.UID || was.Epoch != o.Epoch) {
		c.gone.addTombstoneForReplaced(was, o.Change)
	}
	if denied := c.denied[o.Key]; denied != nil && denied.Epoch != o.Epoch {
		c.gone.addTombstoneForReplaced(denied, o.Change)
		delete(c.denied, o.Key)
	}
	if gone := c.gone.getTombstone(o.Key, o.UID); gone != nil && gone.Epoch == o.Epoch {
		c.gone.removeTombstone(o.Key, o.UID)
	}
	c.live.putObject(o.Key, o)
}

func (t *Lister[T]) overrideStoredState(held, is event.Change) bool {
	believed := is.IsNewerThan(held) || t.discardStoredState(held, is)
	if believed {
		t.dropNewerTombstones(is)
	}
	return believed
}

// discardStoredState removes the state that the API server contradicted. It reports whether the lister may now store
// the API server's state. This is so if the contradicted state was removed, or if the lister holds nothing about the
// object.
func (t *Lister[T]) discardStoredState(contradicted, is event.Change) bool {
	c := t.writing
	held := func(o *Object[T]) bool {
		return o != nil && o.UID == contradicted.UID && o.Epoch == contradicted.Epoch &&
			o.ResourceVersion == contradicted.ResourceVersion && o.Deleted == contradicted.Deleted
	}
	live, gone := c.live.objects[contradicted.Key], c.gone.getTombstone(contradicted.Key, contradicted.UID)
	switch {
	case held(live):
		c.live.removeKey(contradicted.Key)
		c.denied[contradicted.Key] = live
		if own := c.gone.getTombstone(is.Key, is.UID); own != nil && own.UID != contradicted.UID &&
			own.Epoch == is.Epoch && own.ResourceVersion == is.ResourceVersion {
			// The contradicted state had displaced the object that the API server returned.
			c.gone.removeTombstone(is.Key, is.UID)
		}
	case live == nil && held(gone):
		c.gone.removeTombstone(contradicted.Key, contradicted.UID)
		c.denied[contradicted.Key] = gone
	default:
		return live == nil && gone == nil
	}
	return true
}

// dropNewerTombstones removes tombstones of other objects with this name that are newer than the API server's state,
// because this object still exists. It removes nothing if the object itself has a newer tombstone: then the other
// objects may have existed since.
func (t *Lister[T]) dropNewerTombstones(is event.Change) {
	gone := t.writing.gone
	if own := gone.getTombstone(is.Key, is.UID); own != nil && !is.IsNewerThan(own.Change) {
		return
	}
	for _, o := range slices.Collect(gone.tombstonesOf(is.Key)) {
		if o.UID != is.UID && o.Epoch == is.Epoch && !is.IsNewerThan(o.Change) {
			gone.removeTombstone(is.Key, o.UID)
		}
	}
}
