//go:build integration

package plan

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestValidateTupleEqualsServer asks a real server about every tuple that is validated here.
func TestValidateTupleEqualsServer(t *testing.T) {
	client := testenv.LazyOpenFGA(t).Client(t)
	storeID, err := client.CreateStore(t.Context(), "judged")
	if err != nil {
		t.Fatal(err)
	}
	modelID, err := client.WriteModel(t.Context(), storeID, wireModel(t))
	if err != nil {
		t.Fatal(err)
	}
	model := testModel(t)
	long := strings.Repeat("x", 260)
	names := rapid.SampledFrom([]string{
		"user", "team", "folder", "doc", "ship", "", "member", "viewer", "owner", "parent", "editor", "reader", "a b", "é", "1", "*", "a\nb", long, long + long,
	})
	object := rapid.Custom(func(t *rapid.T) string {
		return names.Draw(t, "type") + rapid.SampledFrom([]string{":", ":", ":", ":", "", "#", "::"}).Draw(t, "colon") + names.Draw(t, "id")
	})
	tuples := rapid.Custom(func(t *rapid.T) tuple.Tuple {
		drawn := parseTuple(object.Draw(t, "object"), names.Draw(t, "relation"), object.Draw(t, "user"))
		if rapid.SampledFrom([]bool{true, true, false}).Draw(t, "probable") { // Most random tuples are wrong in more ways than one.
			drawn.Object = "doc:1"
			drawn.Relation = rapid.SampledFrom([]string{"viewer", "owner", "parent", "editor", "reader"}).Draw(t, "likely relation")
			drawn.Condition = rapid.SampledFrom([]string{"", "", "", "from_office", "from_office", "weekdays"}).Draw(t, "likely condition")
			drawn.User = rapid.SampledFrom([]string{"user:1", "user:*", "team:1", "team:1#member", "team:*", "folder:1", "folder:*", "doc:1#viewer", "doc:1#owner"}).Draw(t, "likely user")
		}
		if rapid.SampledFrom([]bool{true, false, false, false}).Draw(t, "spoilt") {
			drawn.Condition = rapid.SampledFrom([]string{"", "from_office", "weekdays", "a b"}).Draw(t, "condition")
			drawn.User += rapid.SampledFrom([]string{"#member", "#", "#*", "#member#member"}).Draw(t, "userset")
		}
		if drawn.Condition != "" {
			drawn.Context = rapid.SampledFrom([]string{
				"", `{"floor":3}`, `{"ip":"10.1.1.1"}`, `{"ip":"nowhere"}`, `{"floor":"x"}`, `{"day":1}`, `{"floor":3,"day":1}`, `{"floor":1.5}`, `{"ip":"a\u0000b"}`,
			}).Draw(t, "context")
		}
		return drawn
	})
	allowed, refused := 0, 0
	for range 40 {
		rapid.Check(t, func(t *rapid.T) {
			drawn := tuples.Draw(t, "tuple")
			ours := drawn.Validate()
			if ours == nil {
				ours = model.ValidateTuple(drawn)
			}
			theirs := client.Write(t.Context(), storeID, modelID, tuple.ToOpenFGAKeys([]tuple.Tuple{drawn}), nil)
			if theirs != nil && !errors.Is(theirs, fga.ErrInvalidTuple) {
				t.Fatalf("writing %v: %v", drawn, theirs)
			}
			if (ours == nil) != (theirs == nil) {
				t.Fatalf("%v: we say %v, the server says %v", drawn, ours, theirs)
			}
			if theirs == nil {
				allowed++
			} else {
				refused++
			}
		})
	}
	t.Logf("%d allowed, %d refused", allowed, refused)
	if allowed < 100 || refused < 1000 {
		t.Error("hardly a test")
	}
}
