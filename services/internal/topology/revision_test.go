package topology

import (
	"fmt"
	"testing"
	"time"
)

func TestParseRevisionInvertsFormatRevision(t *testing.T) {
	for _, began := range []time.Time{time.Unix(1, 0), time.Unix(1_800_000_000, 120_000_000)} {
		sequence, life, err := ParseRevision(FormatRevision(7, began.UTC().Format(time.RFC3339Nano)))
		if err != nil || sequence != 7 || !life.Equal(began) {
			t.Errorf("of %s: %d of %s, %v", began, sequence, life, err)
		}
	}
}

func TestParseRevisionExplainsInvalidText(t *testing.T) {
	for text, why := range map[string]string{
		"":                            "there is no @ in it",
		"7":                           "there is no @ in it",
		"@":                           `"" before the @ is not a sequence number`,
		"x@2026-01-02T03:04:05Z":      `"x" before the @ is not a sequence number`,
		"-1@2026-01-02T03:04:05Z":     `"-1" before the @ is not a sequence number`,
		"7@":                          `"" after the @ is not a time`,
		"7@yesterday":                 `"yesterday" after the @ is not a time`,
		"7@2026-01-02T03:04:05Z@":     `"2026-01-02T03:04:05Z@" after the @ is not a time`,
		"99999999999999999999@x":      `"99999999999999999999" before the @ is not a sequence number`,
		"7@2026-01-02T03:04:05Z\x1b[": `"2026-01-02T03:04:05Z\x1b[" after the @ is not a time`,
	} {
		want := fmt.Sprintf("%q is not a revision: %s; give the revision of an earlier answer, such as 42@2026-01-02T03:04:05.678Z", text, why)
		if sequence, began, err := ParseRevision(text); err == nil || err.Error() != want || sequence != 0 || !began.IsZero() {
			t.Errorf("%d, %s, %v, want %s", sequence, began, err, want)
		}
	}
	if _, _, err := ParseRevision("42@2026-01-02T03:04:05.678Z"); err != nil {
		t.Errorf("the example is none: %v", err)
	}
}
