package topology

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// FormatRevision returns a revision: the sequence of a message on [Changes], and the ID of the stream. Sequences start
// again when the stream is created again.
func FormatRevision(sequence uint64, streamID string) string {
	return fmt.Sprintf("%d@%s", sequence, streamID)
}

// ParseRevision parses the output of [FormatRevision]. streamCreated is the creation time of the stream.
func ParseRevision(revision string) (sequence uint64, streamCreated time.Time, err error) {
	number, streamID, cut := strings.Cut(revision, "@")
	sequence, ofNumber := strconv.ParseUint(number, 10, 64)
	streamCreated, ofTime := time.Parse(time.RFC3339Nano, streamID)
	switch {
	case !cut:
		err = invalidRevisionError(revision, "there is no @ in it")
	case ofNumber != nil:
		err = invalidRevisionError(revision, fmt.Sprintf("%q before the @ is not a sequence number", number))
	case ofTime != nil:
		err = invalidRevisionError(revision, fmt.Sprintf("%q after the @ is not a time", streamID))
	}
	if err != nil {
		return 0, time.Time{}, err
	}
	return sequence, streamCreated, nil
}

// invalidRevisionError returns an error with an example of a valid revision.
func invalidRevisionError(revision, reason string) error {
	return fmt.Errorf("%q is not a revision: %s; give the revision of an earlier answer, such as 42@2026-01-02T03:04:05.678Z", revision, reason)
}
