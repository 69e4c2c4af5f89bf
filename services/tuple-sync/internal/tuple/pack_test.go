package tuple

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestPackTuplesRoundTrips(t *testing.T) {
	var list []Tuple
	for i := range 5000 {
		list = append(list, Tuple{ID: ID{fmt.Sprintf("document:%05d", i), "viewer", "user:somebody"}})
	}
	list = append(list, Tuple{ID: ID{"document:1", "viewer", "user:1"}, Condition: "large", Context: `{"size":5}`})
	packed, err := PackTuples(list)
	if err != nil || len(packed) > 50_000 {
		t.Fatalf("%d bytes, %v", len(packed), err)
	}
	if again, err := UnpackTuples(packed); err != nil || !slices.Equal(again, list) {
		t.Errorf("read again are %d tuples, %v", len(again), err)
	}
}

func TestUnpackTuplesRefusesInvalidList(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := encoder.EncodeAll(bytes.Repeat([]byte(" "), 64<<20), nil)
	for name, packed := range map[string][]byte{
		"nothing": nil, "noise": []byte("noise"), "no list": encoder.EncodeAll([]byte("{}"), nil),
		"cut off": bomb[:len(bomb)/2], "a bomb": bomb,
	} {
		if list, err := UnpackTuples(packed); err == nil {
			t.Errorf("%s is read as %v", name, list)
		}
	}
	if _, err := PackTuples([]Tuple{{ID: ID{Object: strings.Repeat("x", maxUnpacked)}}}); err == nil {
		t.Error("what cannot be read again is packed")
	}
}
