package opensearchsync

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// role returns a role with a UID. If ours is true, its status has the condition that only opensearch-sync writes.
func role(uid string, ours bool) declaredObject {
	value := &opensearchv1.OpensearchRole{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	if ours {
		c := condition.New(opensearchv1.Ready, true, plan.Synced, "")
		value.Status.Conditions = condition.MergeConditions(nil, []string{c.Type}, 1, metav1.Now(), c)
	}
	return declaredObject{Change: event.Change{UID: uid}, value: value}
}

func TestMisreadNameStopsWritesUntilObjectLeaves(t *testing.T) {
	o := role("u", true)
	o.value.SetName("a~1b")
	binding := declaredObject{value: &opensearchv1.OpensearchUserRoleBinding{Spec: opensearchv1.OpensearchUserRoleBindingSpec{Roles: []string{"logs", "a~1b"}}}}
	if toPlanObjects([]declaredObject{o}, "s", nil, nil)[0].Obstacle == nil || toPlanBindings([]declaredObject{binding}, "s", nil)[0].Obstacle == nil {
		t.Error("got no obstacle, want one for each object")
	}
	o.value.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	if verdict := misreadNameObstacle(o, "a~1b"); verdict != nil || misreadNameObstacle(binding, "logs") != nil {
		t.Errorf("got %v, want no obstacle", verdict)
	}
}

func TestForeignWriterDetectorBlocksForQuietPeriod(t *testing.T) {
	now := time.Unix(1, 0)
	r := newForeignWriterDetector(func() time.Time { return now }, func(event.Key, string) bool { return true })
	stands := func(o declaredObject) bool {
		all := []declaredObject{o}
		found := r.markForeignWritten(all, ownDefinitions)
		if found != (all[0].obstacle != nil) {
			t.Fatalf("found: %t, obstacle: %v", found, all[0].obstacle)
		}
		return found
	}
	if stands(role("a", false)) {
		t.Error("one that the public operator has handed over is not ours to defend")
	}
	if stands(role("a", true)) || !stands(role("a", false)) {
		t.Error("whose status was ours, and is not, is struck")
	}
	if stands(role("b", false)) {
		t.Error("another is not struck")
	}
	now = now.Add(quiet - 1)
	if !stands(role("a", true)) {
		t.Error("a status of ours does not end it")
	}
	if !stands(role("a", false)) {
		t.Error("it is struck again")
	}
	now = now.Add(quiet - 1)
	if !stands(role("a", true)) {
		t.Error("it counts from the last time")
	}
	leaving := role("a", true)
	leaving.value.SetDeletionTimestamp(&metav1.Time{Time: now})
	if all := []declaredObject{leaving}; r.markForeignWritten(all, ownDefinitions) && all[0].obstacle != nil {
		t.Error("whoever leaves goes")
	}
	now = now.Add(1)
	for range 2 {
		if stands(role("a", true)) {
			t.Error("after a while it is over")
		}
	}
	adopted := role("a", false)
	adopted.value.SetAnnotations(map[string]string{opensearchv1.AdoptAnnotation: "true"})
	if stands(adopted) {
		t.Error("who is to have it has it")
	}
	if !stands(role("a", false)) {
		t.Error("it is struck once more")
	}
	if r.recordOwnWrite(event.Change{UID: "c"}, *role("c", true).value.CommonStatus()); !stands(role("c", false)) {
		t.Error("one that we wrote is struck")
	}
	if r.recordOwnWrite(event.Change{UID: "d"}, *role("d", false).value.CommonStatus()); stands(role("d", false)) {
		t.Error("where nothing of ours is kept, nothing of it is struck")
	}
	if r.forgetUID("a"); stands(role("a", false)) {
		t.Error("nothing is known of who was forgotten")
	}
}

func TestUnresponsiveServerIsProbedByOneRun(t *testing.T) {
	silent := errors.New("no answer")
	c := &clusterConnection{}
	for range 3 {
		if err := c.beginRun(false); err != nil {
			t.Fatal(err)
		}
	}
	if c.endRun(nil) || c.endRun(silent) {
		t.Error("nobody has waited for an answer")
	}
	if err := c.beginRun(false); !errors.Is(err, silent) {
		t.Errorf("beside one who waits for a silent server: %v", err)
	}
	if err := c.beginRun(true); err != nil {
		t.Errorf("who has no second chance: %v", err)
	}
	for range 2 {
		if c.endRun(silent) {
			t.Error("it is still silent")
		}
	}
	if err := c.beginRun(false); err != nil {
		t.Fatal(err)
	}
	if _, err := (&reconciler{}).observeAndPlan(t.Context(), nil, &syncInput{to: c}, nil); !errors.Is(err, silent) {
		t.Errorf("a second one: %v", err)
	}
	before := c.answersSince()
	if !c.endRun(nil) {
		t.Error("it answers again")
	}
	if !c.answersSince().After(before) || before.IsZero() {
		t.Errorf("it answers since %s, and since %s before the outage", c.answersSince(), before)
	}
	for range 2 {
		if err := c.beginRun(false); err != nil {
			t.Error(err)
		}
	}
}

// ownDefinitions stands for definitions that have all our fields.
func ownDefinitions(kinds.Kind) bool { return false }

func TestForeignWriterDetectorIgnoresForeignDefinitions(t *testing.T) {
	lives := func(event.Key, string) bool { return true }
	for _, foreign := range []bool{false, true} {
		r, definition := newForeignWriterDetector(time.Now, lives), func(kinds.Kind) bool { return foreign }
		r.markForeignWritten([]declaredObject{role("u", true)}, ownDefinitions)
		if got := r.markForeignWritten([]declaredObject{role("u", false)}, definition); got == foreign {
			t.Errorf("foreign %t: got another controller %t", foreign, got)
		}
	}
}
