package event_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/event"
)

func sample() event.Change {
	return event.Change{
		Key:     event.Key{Cluster: "local", GroupResource: event.GroupResource{Group: "g", Resource: "stores"}, Name: "demo"},
		Version: "v1alpha1", Kind: "Store", UID: "u1", ResourceVersion: "10", Generation: 3,
		Object: []byte(`{"a":1}`), Epoch: "e1", ObservedAt: time.Unix(1, 2).UTC(), Traceparent: "00-x",
	}
}

func TestChangeRoundTrips(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*event.Change){
		"upsert":  func(*event.Change) {},
		"delete":  func(c *event.Change) { c.Deleted = true },
		"omitted": func(c *event.Change) { c.Omitted, c.Object = true, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := sample()
			edit(&want)
			data, err := want.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			got, err := event.UnmarshalChange(want.Key, data)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %#v, %v; want %#v", got, err, want)
			}
		})
	}
}

func TestUnmarshalChangeRefusesIncompleteOrForeignData(t *testing.T) {
	t.Parallel()
	wire := func(edit func(*eventv1.ResourceChange)) []byte {
		m := &eventv1.ResourceChange{Ref: sample().Key.ToObjectRef(), Uid: "u", ResourceVersion: "1", Operation: eventv1.Operation_OPERATION_UPSERT}
		edit(m)
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"rubbish":             {[]byte("\xff\xff"), "decode change of stores.g/demo"},
		"nothing":             {nil, "speaks of"},
		"another object":      {wire(func(m *eventv1.ResourceChange) { m.Ref.Name = "other" }), "speaks of stores.g/other"},
		"no uid":              {wire(func(m *eventv1.ResourceChange) { m.Uid = "" }), "lacks a mandatory field"},
		"no resource version": {wire(func(m *eventv1.ResourceChange) { m.ResourceVersion = "" }), "lacks a mandatory field"},
		"no operation":        {wire(func(m *eventv1.ResourceChange) { m.Operation = 0 }), "lacks a mandatory field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := event.UnmarshalChange(sample().Key, test.data); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v does not say %q", err, test.want)
			}
		})
	}
}

func TestIsNewerThanComparesVersions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*event.Change)
		want bool
	}{
		"the same":                        {func(*event.Change) {}, false},
		"older":                           {func(c *event.Change) { c.ResourceVersion = "9" }, false},
		"newer":                           {func(c *event.Change) { c.ResourceVersion = "11" }, true},
		"newer with more digits":          {func(c *event.Change) { c.ResourceVersion = "100" }, true},
		"deleted at the same version":     {func(c *event.Change) { c.Deleted = true }, true},
		"older deletion":                  {func(c *event.Change) { c.Deleted, c.ResourceVersion = true, "9" }, false},
		"another epoch":                   {func(c *event.Change) { c.Epoch, c.ResourceVersion = "e2", "1" }, true},
		"a version that does not compare": {func(c *event.Change) { c.ResourceVersion = "x" }, true},
		"re-created under the same name":  {func(c *event.Change) { c.UID, c.ResourceVersion = "u2", "12" }, true},
		"the earlier object of that name": {func(c *event.Change) { c.UID, c.ResourceVersion = "u0", "5" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sample()
			test.edit(&c)
			if got := c.IsNewerThan(sample()); got != test.want {
				t.Errorf("NewerThan = %v, want %v", got, test.want)
			}
		})
	}
	gone := sample()
	gone.Deleted = true
	if gone.IsNewerThan(gone) {
		t.Error("a deletion replaces itself")
	}
}

func TestDeduplicationIDIsUniquePerState(t *testing.T) {
	t.Parallel()
	a, b := sample(), sample()
	b.Deleted = true
	if a.DeduplicationID() == b.DeduplicationID() || a.DeduplicationID() != "local/e1/u1/10/upsert" {
		t.Errorf("ids %q and %q", a.DeduplicationID(), b.DeduplicationID())
	}
}

func TestDecodeEachStopsAtFirstError(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection broke")
	object := func(text string) event.Change {
		c := sample()
		c.Object = []byte(text)
		return c
	}
	for name, test := range map[string]struct {
		list []event.Change
		end  error // after the list
		took []int
		want string
	}{
		"nothing":                  {},
		"all":                      {list: []event.Change{object(`{"a":1}`), object(`{"a":2}`)}, took: []int{1, 2}},
		"an object that is none":   {list: []event.Change{object(`{"a":1}`), object(`[]`), object(`{"a":3}`)}, took: []int{1}, want: "decoding stores.g/demo"},
		"a list that is cut":       {list: []event.Change{object(`{"a":1}`)}, end: broken, took: []int{1}, want: broken.Error()},
		"an object without a body": {list: []event.Change{object("")}, want: "decoding stores.g/demo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var took []int
			err := event.DecodeEach(func(yield func(event.Change, error) bool) {
				for _, c := range test.list {
					if !yield(c, nil) {
						return
					}
				}
				if test.end != nil {
					yield(event.Change{}, test.end)
				}
			}, func(v *struct{ A int }) { took = append(took, v.A) })
			if !slices.Equal(took, test.took) || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("took %v, %v; want %v, %q", took, err, test.took, test.want)
			}
		})
	}
}
