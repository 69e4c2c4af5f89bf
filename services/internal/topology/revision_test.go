package topology

import (
	"testing"
	"time"
)

func TestRevisionsAreReadAsTheyWereWritten(t *testing.T) {
	for _, began := range []time.Time{time.Unix(1, 0), time.Unix(1_800_000_000, 120_000_000)} {
		sequence, life, err := ParseRevision(Revision(7, began.UTC().Format(time.RFC3339Nano)))
		if err != nil || sequence != 7 || !life.Equal(began) {
			t.Errorf("of %s: %d of %s, %v", began, sequence, life, err)
		}
	}
	for _, text := range []string{"", "7", "@", "7@", "7@yesterday", "-1@2026-01-02T03:04:05Z", "x@2026-01-02T03:04:05Z", "7@2026-01-02T03:04:05Z@"} {
		if _, _, err := ParseRevision(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
