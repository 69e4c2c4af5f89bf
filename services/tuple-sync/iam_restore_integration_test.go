//go:build integration

package tuplesync_test

import (
	"slices"
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
)

// Who was let go since a backup has nothing again, and who came since has it still, once that backup is put in place: under the
// service, which knows better, and under one that starts later.
func TestRestoredOpenFGABackupConverges(t *testing.T) {
	for name, away := range map[string]bool{"while it runs": false, "while it is away": true} {
		t.Run(name, func(t *testing.T) {
			b := newEnvWithRoles(t)
			b.AwaitNoCalls()
			restore := b.OpenFGA.Backup(t)
			carol := b.user("carol")
			b.bind("carol", "editor", on(projectType, b.web), user(carol))
			b.mayBoth(true, "carol")
			b.remove(kinds.PolicyBindings(), "bob")
			b.remove(kinds.GroupMemberships(), "alice-staff")
			b.mayBoth(false, "bob")
			b.mayBoth(false, "alice")
			b.AwaitNoCalls()
			declared := b.holds(b.id)
			if away {
				b.running.Stop()
			}
			restore()
			if away {
				if slices.Equal(b.holds(b.id), declared) {
					t.Fatal("the backup holds what is declared since")
				}
				b.serve()
			}
			b.awaitTuples(b.id, declared...)
			b.mayBoth(false, "bob")
			b.mayBoth(false, "alice")
			b.mayBoth(true, "carol")
			if !away {
				b.bind("bob", "editor", on(projectType, b.web), user(b.bob)) // Life goes on.
				b.mayBoth(true, "bob")
			}
		})
	}
}
