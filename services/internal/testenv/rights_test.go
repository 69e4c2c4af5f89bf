package testenv

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/rbac"
)

func TestSampleRightsHasEveryVerb(t *testing.T) {
	for _, account := range rbac.ServiceAccounts() {
		rights := ServiceRights(account.Service)
		chosen := sampleRights(rights, "0123abc")
		if !slices.Equal(chosen, sampleRights(rights, "0123abc")) {
			t.Errorf("%s: one commit has two samples", account.Service)
		}
		count := map[string]int{}
		for _, r := range chosen {
			count[r.Verb]++
		}
		for _, r := range rights {
			if n := count[r.Verb]; n == 0 || n > 1 && !r.isAdmissionVerb() {
				t.Errorf("%s: got %d rights to %s, want 1", account.Service, n, r.Verb)
			}
			if r.isAdmissionVerb() && !slices.Contains(chosen, r) {
				t.Errorf("%s: the sample lacks the right to %s", account.Service, r)
			}
		}
	}
}

func TestSampleRightsCoversAllRightsOverCommits(t *testing.T) {
	for _, account := range rbac.ServiceAccounts() {
		rights := ServiceRights(account.Service)
		for _, right := range rights {
			reached := false
			for i := 0; !reached && i < 10_000; i++ {
				reached = slices.Contains(sampleRights(rights, fmt.Sprintf("commit %d", i)), right)
			}
			if !reached {
				t.Errorf("%s: no commit chooses the right to %s", account.Service, right)
			}
		}
	}
	if first := sampleRights(ServiceRights("watcher"), ""); first[0] != ServiceRights("watcher")[0] {
		t.Errorf("without a commit, the sample begins with %s", first[0])
	}
}
