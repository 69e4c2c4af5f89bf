//go:build integration

package watcher_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

func TestWatcherRepublishesAfterAPIServerRestore(t *testing.T) {
	b := newTestEnv(t)
	b.apply("kept", "1")
	_, url := b.runOn(b.kube.ServiceConfig(t, topology.Watcher))
	b.becomes()
	restore := b.kube.Backup(t)
	b.apply("kept", "2")
	for i := range 200 { // An API server writes fewer at its start.
		b.apply(fmt.Sprint("made-", i), "1")
	}
	b.becomes()
	restore()
	testenv.Eventually(t, within, func() error {
		_, text, err := readyz(url)
		if err == nil && !strings.Contains(text, "resource versions went back") {
			err = fmt.Errorf("/readyz says %q", text)
		}
		return err
	})
	b.becomes()
	testenv.Eventually(t, within, func() error {
		m, err := b.marker(kinds.Stores())
		if err != nil || !strings.HasSuffix(m.GetEpoch(), "/1") {
			return fmt.Errorf("marker is %v, %w", m, err)
		}
		status, text, err := readyz(url)
		if err == nil && status != http.StatusOK {
			err = errors.New(text)
		}
		return errors.Join(b.equal(), err)
	})
	if last := b.last("made-1"); !last.Deleted {
		t.Errorf("what the backup does not have is %+v", last.Entry)
	}
}
